# SPDX-License-Identifier: Apache-2.0
"""What the source of some files would be if it said what the rules say: the question behind `apply` and `check`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lens_auto.codemod.block import Damaged
from lens_auto.codemod.index import Index
from lens_auto.codemod.source import Source, Unreadable, is_module, module_of, read
from lens_auto.codemod.style import STYLES
from lens_auto.codemod.undo import undo
from lens_auto.codemod.wish import Refused
from lens_auto.codemod.wishes import Problem, wishes
from lens_auto.codemod.writing import write
from lens_auto.rules import finding
from lens_auto.rules.plan import speak
from lens_auto.rules.plan_build import Built, build
from lens_auto.rules.selection import UnknownGroup, select_all
from lens_auto.rules.validate import shown_path
from lens_auto.wrap.glob import matches

_STYLE = re.compile(rb'^# lens-codemod: begin \(style ([\w-]+),', re.MULTILINE)
_ORIGINAL = re.compile(r'(?<=^# lens-codemod: begin \(style )[\w-]+, original [0-9a-f]+', re.MULTILINE)


class Failed(Exception):
    """It cannot be done; the text says what and why."""


class Change(NamedTuple):
    """A file, and what it would be.

    Attributes:
        source: The file as it is.
        text: What it would be; None where it has to be left alone.
        places: What it would say: line, kind, and the span's name or the function's.
        problems: What is left out.
        failed: Why the file has to be left alone, '' if it has not.
        met: Keys of the rules that have a place in it.
        framework: The framework of a rule that has.
    """

    source: Source
    text: str | None
    places: list[tuple[int, str, str]]
    problems: list[Problem]
    failed: str
    met: set[str]
    framework: str

    def first_difference(self) -> int:
        """The first line that would change."""
        was, is_ = self.source.text.splitlines(), (self.text or '').splitlines()
        for number, (one, other) in enumerate(zip(was, is_, strict=False), 1):
            if one != other:
                return number
        return min(len(was), len(is_)) + 1


def rules(named: Sequence[str], paths: Sequence[str], groups: str | None, vocabulary: str) -> Built:
    """The rules that count.

    Args:
        named: The files named; where there are none, those that a run of the program would use.
        paths: The files and folders to change.
        groups: The spec of the groups that count, None for all.
        vocabulary: The one chosen, '' for each file's first.

    Raises:
        RuleErrors: All faults of all rule files.
        Failed: Nobody knows a group.
    """
    if named:
        sources = finding.only(named, '--rules')
    else:
        folders = dict.fromkeys(path if os.path.isdir(path) else os.path.dirname(path) or '.' for path in paths)
        beside = [os.path.join(folder, finding.LOCAL_NAME) for folder in folders]
        here = os.environ.get('LENS_RULES', '').split(os.pathsep)
        environ = {'LENS_RULES': os.pathsep.join([*filter(None, here), *filter(os.path.isfile, beside)])}
        sources = finding.sources((), environ, ())
    built = build(sources, '')
    speak(built.plan, vocabulary)
    if groups is not None:
        _only(built, groups)
    return built


def _only(built: Built, groups: str) -> None:
    """Leave out the rules and labels whose groups are not selected."""
    files: list[dict[str, Any]] = built.plan['files']
    try:
        on = select_all(groups, files)
    except UnknownGroup as unknown:
        known = ', '.join((*unknown.groups, *unknown.presets))
        raise Failed(f'span group `{unknown.token}` is not known\n    known: {known}') from None
    kept: list[dict[str, Any]] = []
    for rule in built.plan['rules']:
        index: int = rule['file']
        selected = on[index]
        if rule['kind'] == 'timer':
            for label in rule['labels'].values():
                label['drop'] = label['drop'] or label['group'] not in selected
            kept.append(rule)
        elif rule['group'] is None or rule['group'] in selected:
            kept.append(rule)
    built.plan['rules'] = kept


def applied(built: Built, paths: Sequence[str], style: str | None) -> Iterator[Change]:
    """What the rules would make of some files: those that they have a place in, or that have something of ours.

    Args:
        built: The rules.
        paths: The files.
        style: The style; None for that which they are written in, else `lens`.
    """
    modules = {module for rule in built.plan['rules'] for module in _modules(rule)}
    timers = [rule for rule in built.plan['rules'] if rule['kind'] == 'timer']
    style = style or _style_of(paths)
    for path in paths:
        data = _head(path, None)
        ours = b'lens-codemod: begin' in data
        if not ours and not any(is_module(path, module) for module in modules):
            if not any(_may_use(rule, path, data) for rule in timers):
                continue
        change = _change(built, path, style)
        if change is not None:
            yield change


def _style_of(paths: Sequence[str]) -> str | None:
    """The style that files which are written already are in, if that is one."""
    found = {match[1].decode() for path in paths for match in [_STYLE.search(_head(path, 65536))] if match}
    return found.pop() if len(found) == 1 else None


def _head(path: str, size: int | None) -> bytes:
    try:
        with open(path, 'rb') as file:
            return file.read(-1 if size is None else size)
    except OSError:
        return b''


def _modules(rule: Mapping[str, Any]) -> Iterator[str]:
    for part in ('targets', 'start', 'stop', 'lap'):
        yield from (target[0] for target in rule.get(part, ()))


def _may_use(rule: Mapping[str, Any], path: str, data: bytes) -> bool:
    """Whether a file may use a timer, which may be anywhere: it takes seconds to look closely at a large one."""
    targets = [target[1] for part in ('with', 'pair') for target in rule[part]]
    targets += [target[2] for target in rule['pair']]
    names = {target.rpartition('.')[2].encode() for target in targets}
    if not any(b'%b(' % name in data for name in names) and b'__call__' not in names:
        return False
    if rule['only_from'] is not None and not any(matches(pattern, module_of(path)) for pattern in rule['only_from']):
        return False
    if any('*' in label or '?' in label or label.encode() in data for label in rule['labels']):
        return True
    # None of its labels: where it is spoken of the timer and something is timed by a name, that has to be told.
    owners = {target.split('.')[-2] if '.' in target else target for target in targets}
    called = b'|'.join(re.escape(name) for name in names)
    timed = re.search(rb'\b(?:%b)\(\s*[^\s\'")]' % called, data)
    return timed is not None and any(owner.lower().encode() in data.lower() for owner in owners)


def _change(built: Built, path: str, style: str | None) -> Change | None:
    try:
        source = read(path)
    except Unreadable as unreadable:
        empty = Source(path, b'')
        return Change(empty, None, [], [], str(unreadable), set(), '')
    try:
        undone = undo(source)
        plain = source if undone is None else Source(path, source.data(undone.text))
        own = undone.style if undone is not None else ''
        chosen = STYLES.get(style or own) or STYLES['lens']
        index = Index(plain)
        wanted = wishes(built, plain, index)
        written = write(plain, index, wanted.found, chosen)
    except (Damaged, Refused, Unreadable) as problem:
        return Change(source, None, [], [], str(problem), set(), '')
    if undone is None and not wanted.met:
        return None
    met = [rule for rule in built.plan['rules'] if rule['key'] in wanted.met]
    framework = built.plan['files'][met[0]['file']]['framework'] if met else ''
    problems = [*wanted.problems, *written.problems]
    text = written.text
    if _ORIGINAL.sub('', text, count=1) == _ORIGINAL.sub('', source.text, count=1):
        text = source.text  # edited since, and not where it matters
    return Change(source, text, written.places, problems, '', wanted.met, framework)


def told(change: Change, built: Built) -> Iterator[str]:
    """What has to be said of a file: what is left out, and why.

    Args:
        change: The file.
        built: The rules.
    """
    path = os.path.relpath(change.source.path)
    path = change.source.path if path.startswith('..') else path
    if change.failed:
        yield f'{path}: left alone: {change.failed}'
    for line, reason, rule, part in change.problems:
        where = f'{path}:{line}' if line else path
        file = shown_path(built.plan['files'][rule['file']]['path'])
        yield f'{where}: {"" if part else "not written: "}{reason}\n    {file}:{rule["line"]} asks for it'
