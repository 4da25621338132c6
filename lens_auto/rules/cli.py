# SPDX-License-Identifier: Apache-2.0
"""The command `lens-rules`: do rule files fit an environment, and what do they compile to."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from . import finding
from .errors import RuleErrors
from .expression import show, show_template
from .merging import modules
from .plan import speak
from .plan_build import Built, build
from .resolver import Finding, resolve
from .source_tree import SourceTree
from .validate import shown_path

_ASK_PATH = 'import json, sys; sys.stdout.write("\\n" + json.dumps([sys.path, list(sys.version_info[:2])]))'
_DISCOVER = 'Read a program, without importing it, and propose a commented rule file. Exit code 1: nothing was found.'
_SOURCES = """\
Without FILES: the files that `lens-instrument` would use here: LENS_RULES, lens.yaml in this folder, those of installed
packages, and the built-in ones."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `lens-rules`.

    Args:
        arguments: Its arguments; those of the process unless given.

    Returns:
        0; 1 when a rule no longer fits the environment; 2 when a rule file or the command line is wrong.
    """
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except RuleErrors as errors:
        print(errors, file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has seen enough (`| head`). Python flushes stdout once more at exit, which must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='lens-rules',
        description='Check rule files against an installed environment, and show what they compile to.',
        epilog='exit code: 0, or 1 when a rule no longer fits, or 2 when a rule file or the command line is wrong',
    )
    commands = parser.add_subparsers(title='commands', metavar='COMMAND', required=True)
    check = commands.add_parser(
        'check',
        help='does every rule find its target?',
        description='Look for the target of every rule in an environment, without importing anything of it.',
        epilog=_SOURCES,
    )
    check.add_argument('--python', metavar='X', help='the interpreter whose environment counts (default: this one)')
    check.add_argument('files', nargs='*', metavar='FILES', help='rule files')
    check.set_defaults(run=_check)
    show_plan = commands.add_parser(
        'show-plan',
        help='what do the rules compile to?',
        description='Show the compiled rules, with all defaults filled in.',
        epilog=_SOURCES,
    )
    show_plan.add_argument('--json', action='store_true', help='the whole plan as JSON')
    show_plan.add_argument('files', nargs='*', metavar='FILES', help='rule files')
    show_plan.set_defaults(run=_show_plan)
    show = commands.add_parser(
        'show',
        help='what does a module look like as it runs?',
        description='Show the source of a module or script with what the rules put into it.',
        epilog=_SOURCES.replace('FILES', '--rules'),
    )
    show.add_argument('--rules', action='append', default=[], metavar='FILE', help='a rule file; may be repeated')
    show.add_argument('--code', action='store_true', help='the Python code that runs, instead of the lines of the file')
    show.add_argument('what', metavar='MODULE_OR_PATH', help='my_trainer.loop, or train.py')
    show.set_defaults(run=_show)
    discover = commands.add_parser('discover', help='what rules would a program need?', description=_DISCOVER)
    discover.add_argument('paths', nargs='+', metavar='PATHS', help='Python files, or folders, of the program')
    discover.add_argument('-o', '--output', metavar='FILE', help='where to write the rule file (default: the terminal)')
    discover.add_argument('--limit', type=int, metavar='N', help='the most rules to propose')
    discover.set_defaults(run=_discover)
    return parser


def _discover(options: argparse.Namespace) -> int:
    # Its reading and guessing is no part of what every other command loads.
    from lens_auto.discover.command import run

    return run(options.paths, options.output, options.limit)


def _build(files: Sequence[str]) -> Built:
    sources = finding.only(files) if files else finding.sources((), os.environ, ())
    return build(sources, _agent())


def _agent() -> str:
    import lens_auto

    return str(getattr(lens_auto, '__version__', '0'))


def _check(options: argparse.Namespace) -> int:
    built = _build(options.files)
    path = _path_of(options.python) if options.python else [entry for entry in sys.path if entry]
    if path is None:
        return 2
    # A script's folder is the first on its path, and a user's rule file lies beside the script.
    own = [os.path.dirname(name) for name, _, _, origin in built.files if origin != finding.BUILT_IN]
    here = list(dict.fromkeys([os.getcwd(), *own]))
    findings = resolve(built.plan, list(dict.fromkeys([*path, *here])), here)
    for index, file in enumerate(built.plan['files']):
        rows = [found for found in findings if found.rule['file'] == index]
        print(f'{shown_path(file["path"])}  ({file["framework"]})')
        _table([('line', 'kind', 'target', 'state', ''), *(_row(found) for found in rows)])
    counts: dict[str, int] = {}
    for found in findings:
        counts[found.state] = counts.get(found.state, 0) + 1
    for line in built.ignored:
        print(line)
    total = len(findings)
    print(
        f'{total} rule{"" if total == 1 else "s"}: {", ".join(f"{n} {state}" for state, n in counts.items()) or "none"}'
    )
    return 1 if any(found.drifted for found in findings) else 0


def _show(options: argparse.Namespace) -> int:
    from . import show

    built = _build(options.rules)
    own = [os.path.dirname(name) for name, _, _, origin in built.files if origin != finding.BUILT_IN]
    here = list(dict.fromkeys([os.getcwd(), *own]))
    tree = SourceTree(list(dict.fromkeys([*(entry for entry in sys.path if entry), *here])), here)
    plan = speak(built.plan, '')
    try:
        path = show.path_of(options.what, tree)
        sys.stdout.write((show.code if options.code else show.annotated)(path, plan, tree))
    except show.NoSource as problem:
        print(f'lens-rules: {problem}', file=sys.stderr)
        return 2
    return 0


def _row(found: Finding) -> tuple[str, ...]:
    return str(found.rule['line']), found.rule['kind'], found.target, found.state, found.detail


def _table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print('  ' + '  '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _path_of(python: str) -> list[str] | None:
    # The interpreter may be one that a launcher instruments: it is asked for its path, not traced.
    environ = {**os.environ, 'LENS_ENABLED': '0'}
    try:
        asked = subprocess.run([python, '-c', _ASK_PATH], env=environ, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f'lens-rules: cannot run {python}: {error}', file=sys.stderr)
        return None
    if asked.returncode:
        print(f'lens-rules: {python} ended with {asked.returncode}: {asked.stderr.strip()}', file=sys.stderr)
        return None
    # The last line: a startup file of that environment may print, too.
    path, version = json.loads(asked.stdout.rpartition('\n')[2])
    if tuple(version) > sys.version_info[:2]:
        shown = '.'.join(map(str, version))
        print(
            f'lens-rules: {python} is Python {shown}; files with newer syntax are not checkable here', file=sys.stderr
        )
    return [entry for entry in path if entry]


def _show_plan(options: argparse.Namespace) -> int:
    built = _build(options.files)
    plan = speak(built.plan, '')
    if options.json:
        print(json.dumps({**plan, 'modules': modules(plan)}, indent=2))
        return 0
    for index, file in enumerate(plan['files']):
        origin = built.files[index][3]
        print(f'{shown_path(file["path"])}  ({file["framework"]}{f", from {origin}" if origin else ""})')
        if file['when']:
            print(f'  when {file["when"]["module"]}{file["when"]["version"] or ""}')
        for rule in plan['rules']:
            if rule['file'] == index:
                _show_rule(rule)
    print(f'modules: {", ".join(modules(plan))}')
    return 0


def _show_rule(rule: dict[str, Any]) -> None:
    print(f'  {rule["key"]}  {rule["kind"]}, line {rule["line"]}')
    for key in ('targets', 'with', 'pair', 'start', 'stop', 'lap'):
        for target in rule.get(key, ()):
            print(f'    {key:<10} {target[0]}:{"/".join(target[1:])}'.rstrip(':'))
    for key in ('match', 'label_arg', 'metrics_arg', 'prefix_arg', 'budget'):
        if rule.get(key) is not None:
            print(f'    {key:<10} {rule[key]}')
    if rule['only_from']:
        print(f'    only_from  {", ".join(rule["only_from"])}')
    if rule['name'] is not None:
        print(f'    span       {_span(rule)}')
    for label, span in rule.get('labels', {}).items():
        print(f'    label      {label} -> {"dropped" if span["drop"] else _span(span)}')
    for key, metric in rule.get('metrics', {}).items():
        unit = f' in {metric["unit"]}' if metric['unit'] else ''
        print(f'    metric     {key} -> {show_template(metric["name"])}  {metric["instrument"]}{unit}')
        _show_attributes(metric)
    if rule['kind'] == 'resource':
        _show_attributes(rule)
        if rule['settings'] is not None:
            print(f'    settings   {show(rule["settings"])}')


def _span(span: dict[str, Any]) -> str:
    marks = [f'group {span["group"]}', *([f'bucket {span["bucket"]}'] if span['bucket'] else [])]
    marks += [mark for mark in ('root', 'current') if span.get(mark)]
    marks += [] if span['announce'] else ['not announced']
    shown = ''.join(f'\n                 {name} = {show(tree)}' for name, tree in span['attributes'].items())
    return f'{show_template(span["name"])}  ({", ".join(marks)}){shown}'


def _show_attributes(holder: dict[str, Any]) -> None:
    for name, tree in holder['attributes'].items():
        print(f'                 {name} = {show(tree)}')


if __name__ == '__main__':
    sys.exit(main())
