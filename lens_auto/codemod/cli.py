# SPDX-License-Identifier: Apache-2.0
"""The command `lens-codemod`: rules written into source, checked against it, and taken out again."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from lens_auto.codemod.agreement import Change, Failed, applied, rules, told
from lens_auto.codemod.block import Damaged
from lens_auto.codemod.source import Source, Unreadable, files, read
from lens_auto.codemod.style import STYLES
from lens_auto.codemod.undo import Undone, undo
from lens_auto.rules.errors import RuleErrors
from lens_auto.rules.plan_build import Built

_RULES = """\
Without --rules: LENS_RULES, lens.yaml in this folder and beside the PATHS, those of installed packages, and the
built-in files."""
_CODES = (
    'exit code: 0, or 1 when source and rules disagree (check) or a file had to be left alone, or 2 when a rule file'
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `lens-codemod`.

    Args:
        arguments: Its arguments; those of the process unless given.

    Returns:
        0; 1 when source and rules disagree, or a file had to be left alone; 2 when a rule file or the command line is
        wrong.
    """
    options = _parser().parse_args(arguments)
    missing = [path for path in options.paths if not os.path.exists(path)]
    if missing:
        print(f'lens-codemod: {missing[0]}: no such file or folder', file=sys.stderr)
        return 2
    try:
        return int(options.run(options))
    except RuleErrors as errors:
        print(errors, file=sys.stderr)
        return 2
    except Failed as failed:
        print(f'lens-codemod: {failed}', file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has seen enough (`| head`). Python flushes stdout once more at exit, which must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='lens-codemod',
        description='Write what the rules say into source, for good; and take it out again.',
        epilog=f'{_CODES} or the command line is wrong',
    )
    commands = parser.add_subparsers(title='commands', metavar='COMMAND', required=True)
    apply = _command(commands, 'apply', 'write what the rules say into the source', _apply, True)
    how = apply.add_mutually_exclusive_group()
    how.add_argument('--diff', action='store_true', help='show what would change (this is what it does by itself)')
    how.add_argument('--write', action='store_true', help='change the files')
    _command(commands, 'check', 'does the source say what the rules say?', _check, True)
    revert = _command(commands, 'revert', 'take out of the source what lens-codemod put in', _revert, False)
    how = revert.add_mutually_exclusive_group()
    how.add_argument('--diff', action='store_true', help='show what would change')
    how.add_argument('--write', action='store_true', help='change the files (this is what it does by itself)')
    _command(commands, 'list', 'show what lens-codemod has put in', _list, False)
    return parser


def _command(
    commands: Any, name: str, doc: str, run: Callable[[argparse.Namespace], int], with_rules: bool
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=doc,
        description=f'{doc[0].upper()}{doc[1:]}' + ('' if doc.endswith('?') else '.'),
        epilog=_RULES if with_rules else None,
    )
    if with_rules:
        parser.add_argument('--rules', metavar='FILE', action='append', default=[], help='a rule file; may be repeated')
        style = 'how to write it (default: as a file is written already, else lens)'
        parser.add_argument('--style', choices=sorted(STYLES), help=style)
        groups = 'only the rules of these span groups and presets (default: all)'
        parser.add_argument('--span-groups', metavar='SPEC', help=groups)
        parser.add_argument('--vocabulary', default='', metavar='V', help='whose names, where a rule file has several')
    parser.add_argument('paths', nargs='+', metavar='PATHS', help='files, and folders with all that is in them')
    parser.set_defaults(run=run)
    return parser


class _Outcome(NamedTuple):
    changes: list[Change]
    failures: int


def _changes(options: argparse.Namespace) -> _Outcome:
    """What the rules would change, with everything that has to be said of it on stderr."""
    built = rules(options.rules, options.paths, options.span_groups, options.vocabulary)
    found = _Outcome([], 0)
    failures = 0
    for change in applied(built, list(files(options.paths)), options.style):
        for line in told(change, built):
            print(line, file=sys.stderr)
        failures += change.failed != ''
        found.changes.append(change)
    _unmet(built, found.changes)
    return _Outcome(found.changes, failures)


def _unmet(built: Built, changes: list[Change]) -> None:
    met = {key for change in changes for key in change.met}
    named = {change.framework for change in changes}
    for rule in built.plan['rules']:
        file = built.plan['files'][rule['file']]
        ours = built.files[rule['file']][3] in ('--rules', 'LENS_RULES', 'lens.yaml')
        if rule['key'] not in met and rule['kind'] != 'ray' and ours and named:
            print(f'{_shown(file["path"])}:{rule["line"]}: this {rule["kind"]} rule has no place here', file=sys.stderr)


def _apply(options: argparse.Namespace) -> int:
    outcome = _changes(options)
    changed = [change for change in outcome.changes if change.text is not None and change.text != change.source.text]
    for change in changed:
        if options.write:
            assert change.text is not None
            _store(change.source, change.text)
            print(f'{_shown(change.source.path)}: {_many(len(change.places), "place")}')
        else:
            sys.stdout.writelines(_diff(change.source, change.text or ''))
    if not changed:
        print('nothing to change')
    elif not options.write:
        print(f'{_many(len(changed), "file")} would change: --write changes {_it(len(changed))}', file=sys.stderr)
    return 1 if outcome.failures else 0


def _check(options: argparse.Namespace) -> int:
    outcome = _changes(options)
    differing = [change for change in outcome.changes if change.text is not None and change.text != change.source.text]
    for change in differing:
        line = change.first_difference()
        print(f'{_shown(change.source.path)}:{line}: source and rules disagree; `lens-codemod apply` makes them agree')
    places = sum(len(change.places) for change in outcome.changes)
    if not differing:
        print(f'{_many(places, "place")}, as the rules say')
    return 1 if differing or outcome.failures else 0


def _undone(paths: Sequence[str]) -> Iterator[tuple[Source, Undone]]:
    """The files that have something of ours; those that cannot be read or undone are told of."""
    for path in files(list(paths)):
        try:
            if b'lens-codemod: begin' not in _bytes(path):
                continue
            source = read(path)
            found = undo(source)
            if found is not None:
                yield source, found
        except (Damaged, Unreadable) as problem:
            raise Failed(f'{_shown(path)}: {problem}') from None


def _bytes(path: str) -> bytes:
    try:
        with open(path, 'rb') as file:
            return file.read()
    except OSError:
        return b''


def _revert(options: argparse.Namespace) -> int:
    failures = count = 0
    for path in files(options.paths):
        try:
            for source, undone in _undone([path]):
                count += 1
                if options.diff:
                    sys.stdout.writelines(_diff(source, undone.text))
                    continue
                _store(source, undone.text)
                how = 'as it was' if undone.exact else 'edited since; that is kept, and what was put in is out'
                print(f'{_shown(path)}: {_many(len(undone.uses), "place")} taken out, {how}')
        except Failed as failed:
            print(f'{failed}\n    left as it is', file=sys.stderr)
            failures += 1
    if not count and not failures:
        print('nothing to take out')
    return 1 if failures else 0


def _list(options: argparse.Namespace) -> int:
    failures = 0
    for path in files(options.paths):
        try:
            for _, undone in _undone([path]):
                for line, name, shown in undone.uses:
                    print(f'{_shown(path)}:{line}: {name.removeprefix("_lens_")} {shown}  ({undone.style})')
        except Failed as failed:
            print(failed, file=sys.stderr)
            failures += 1
    return 1 if failures else 0


def _diff(source: Source, text: str) -> Iterator[str]:
    shown = _shown(source.path)
    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    for line in difflib.unified_diff(before, after, f'a/{shown.lstrip("/")}', f'b/{shown.lstrip("/")}'):
        yield line if line.endswith('\n') else f'{line}\n\\ No newline at end of file\n'


def _store(source: Source, text: str) -> None:
    """Replace a file at once, with its mode; through a link, what it leads to."""
    path = os.path.realpath(source.path)
    descriptor, beside = tempfile.mkstemp(prefix='.lens-codemod-', dir=os.path.dirname(path))
    try:
        with os.fdopen(descriptor, 'wb') as file:
            file.write(source.data(text))
        os.chmod(beside, os.stat(path).st_mode & 0o7777)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _shown(path: str) -> str:
    short = os.path.relpath(path)
    return path if short.startswith('..') else short


def _many(count: int, what: str) -> str:
    return f'{count} {what}{"" if count == 1 else "s"}'


def _it(count: int) -> str:
    return 'it' if count == 1 else 'them'


if __name__ == '__main__':
    sys.exit(main())
