# SPDX-License-Identifier: Apache-2.0
"""`lens-rules show`: a module or script as it will run, with what the rules make of it."""

from __future__ import annotations

import ast
import os
import tokenize
from typing import Any

from lens_auto.rewrite.edit import rewrite
from lens_auto.rewrite.places import find

from .expression import show_template
from .matching import wanted
from .merging import target_modules
from .model import SOURCE_KINDS
from .source_tree import SourceTree
from .target import is_script

_BAR = '| '


class NoSource(Exception):
    """There is nothing to show; the text says why."""


def path_of(name: str, tree: SourceTree) -> str:
    """The file that a module name, or a path, stands for.

    Args:
        name: What the user gave.
        tree: Where modules are looked for.

    Raises:
        NoSource: There is none.
    """
    if os.path.isfile(name):
        return os.path.abspath(name)
    found = None if os.sep in name else tree.file(name)
    if found is None:
        raise NoSource(f'{name}: no such file, and no module with source here')
    return found


def code(path: str, plan: dict[str, Any], tree: SourceTree) -> str:
    """The Python that will run in place of a file's own.

    Args:
        path: The file.
        plan: The plan.
        tree: Where the plan's modules are looked for.

    Raises:
        NoSource: It cannot be read, or is no Python that this interpreter knows.
    """
    rules = [(rule, name) for rule, name in _about(path, plan, tree) if _changes(rule)]
    try:
        with open(path, 'rb') as file:
            done = rewrite(file.read(), path, [wanted(rule, name) for rule, name in rules])
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        raise NoSource(f'{path}: {error}') from None
    return ast.unparse(ast.fix_missing_locations(done.tree)) + '\n'


def annotated(path: str, plan: dict[str, Any], tree: SourceTree) -> str:
    """The lines of a file, with a bar beside what a span is around, and a line above that names it.

    Args:
        path: The file.
        plan: The plan.
        tree: Where the plan's modules are looked for.

    Raises:
        NoSource: It cannot be read, or is no Python that this interpreter knows.
    """
    rules = _about(path, plan, tree)
    looked_for = [wanted(rule, name) for rule, name in rules]
    try:
        with open(path, 'rb') as file:
            source = file.read()
        edited = rewrite(source, path, looked_for).found
        with tokenize.open(path) as file:
            text = file.read()
        # Once more, on a tree that nobody has edited: where the bodies of loops are.
        found = find(ast.parse(source), looked_for, text)
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        raise NoSource(f'{path}: {error}') from None
    lines = text.splitlines()
    notes: dict[int, list[str]] = {}
    depth = [0] * (len(lines) + 2)
    head: list[str] = []
    for (rule, name), before, after in zip(rules, found, edited, strict=True):
        changes = _changes(rule) and bool(after.places)
        # A function whose body cannot be changed is wrapped.
        places = before.places if changes or rule['kind'] in SOURCE_KINDS else before.matches
        said = _said(rule, plan, changes)
        if not after.places and (rule['kind'] in SOURCE_KINDS or not places):
            head.append(f'# not applied: {said}: {after.problem or f"there is no {name} in it"}')
            continue
        for place in places:
            start, end = _extent(place.node, place.kind)
            notes.setdefault(start, []).append(said)
            for line in range(start, end + 1):
                depth[line] += 1
    width, widest = len(str(len(lines))), max(depth)
    shown = [f'# {path}', *head]
    for number, line in enumerate(lines, 1):
        margin = ' ' * (width + 2)
        indent = ' ' * (len(line) - len(line.lstrip()))
        shown += [f'{margin}{"":{len(_BAR) * widest}}{indent}# {note}' for note in notes.get(number, ())]
        shown.append(f'{number:>{width}}  {_BAR * depth[number]:{len(_BAR) * widest}}{line}'.rstrip())
    return '\n'.join(shown) + '\n'


def _about(path: str, plan: dict[str, Any], tree: SourceTree) -> list[tuple[dict[str, Any], str]]:
    """The rules with a target in a file, each with the name there."""
    real = os.path.realpath(path)
    same: dict[str, bool] = {}
    found: list[tuple[dict[str, Any], str]] = []
    for rule in plan['rules']:
        for module in target_modules(rule):
            if module not in same:
                where = None if is_script(module) else tree.file(module)
                by_path = is_script(module) and path.endswith(f'/{module}')
                same[module] = by_path or (where is not None and os.path.realpath(where) == real)
        names = [target for key in ('targets', 'with', 'start', 'stop', 'lap') for target in rule.get(key, ())]
        names += [(module, name) for module, *both in rule.get('pair', ()) for name in both]
        found += [(rule, name) for module, name in names if same[module]]
    return found


def _changes(rule: dict[str, Any]) -> bool:
    return rule['kind'] in SOURCE_KINDS or rule.get('apply') == 'rewrite'


def _said(rule: dict[str, Any], plan: dict[str, Any], changes: bool) -> str:
    file = os.path.basename(plan['files'][rule['file']]['path'])
    name = f' {show_template(rule["name"])}' if rule['name'] else ''
    how = '' if changes or rule['kind'] in SOURCE_KINDS else ', wrapped'
    return f'{rule["kind"]}{name}{how} ({file}:{rule["line"]})'


def _extent(node: Any, kind: str) -> tuple[int, int]:
    """The first and the last line of what a span is around."""
    if kind == 'loop':
        return node.body[0].lineno, node.body[-1].end_lineno
    return node.lineno, node.end_lineno
