# SPDX-License-Identifier: Apache-2.0
"""Loops, blocks and calls that a rule finds by a pattern: the matcher works on `ast`, its places are looked up here."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import libcst as cst

from lens_auto.codemod.index import Index, Placed
from lens_auto.codemod.source import Source, is_module, module_of
from lens_auto.codemod.wish import Wish
from lens_auto.rewrite.pattern import parse
from lens_auto.rewrite.places import Place, Wanted, find
from lens_auto.rules.expression import Tree

LONGEST_TEXT = 256  # of a captured expression, as at run time


def patterned(
    rule: Mapping[str, Any],
    variables: Mapping[str, Any],
    source: Source,
    index: Index,
    note: Callable[[int, str], None],
) -> Iterator[Wish]:
    """The places of a rule with a pattern.

    Args:
        rule: The rule.
        variables: The rule file's `vars`.
        source: The file.
        index: What is in it.
        note: Told of a line and why something there is left out.
    """
    tree: ast.Module | None = None
    for module, qualname in rule['targets']:
        if not is_module(source.path, module):
            continue
        tree = tree or ast.parse(source.text)
        pattern = parse(rule['kind'], rule['match'])
        wanted = Wanted(rule['key'], rule['kind'], qualname, pattern, rule['expect'], rule['force'])
        [found] = find(tree, [wanted], source.text)
        for place in found.matches:
            if place.refused:
                note(place.lineno, place.refused)
        if not found.places:
            if found.problem and not any(place.refused for place in found.matches):
                note(0, found.problem)
            continue
        nodes = _nodes(source, index, rule['kind'])
        for place in found.places:
            if place.refused:
                continue
            placed = nodes.get(_where(place, source))
            if placed is None:
                note(place.lineno, 'it stands inside an f-string, where nothing can be added')
                continue
            folded = _captured(place, source)
            folded[('caller', 'module')] = ('c', module_of(source.path))
            folded[('caller', 'function')] = ('c', placed.scope.name)
            where = f'{module}:{qualname}' if qualname else module
            yield Wish(
                rule['kind'],
                placed.scope,
                placed.node,
                rule,
                rule,
                variables,
                part='await' if place.kind == 'call' and place.awaited else '',
                folded=folded,
                target=f'{where} {rule["match"]}',
            )
        return


def _where(place: Place, source: Source) -> tuple[int, int]:
    start = source.offset(place.lineno, place.col_offset)
    # Two calls may begin at one place, `f(x)(y)`; statements do not.
    return start, source.offset(place.end_lineno, place.end_col_offset) if place.kind == 'call' else 0


def _nodes(source: Source, index: Index, kind: str) -> dict[tuple[int, int], Placed]:
    """The nodes of a kind, by where `ast` says they are."""
    if kind != 'call':
        return {(source.span(each.node)[0], 0): each for each in (index.loops if kind == 'loop' else index.withs)}
    found: dict[tuple[int, int], Placed] = {}
    for (start, end), placed in index.every_call.items():
        assert isinstance(placed.node, cst.Call)
        # `ast` does not count parentheses around an expression as part of it.
        before = sum(_width(left) for left in placed.node.lpar)
        after = sum(_width(right) for right in placed.node.rpar)
        found[start + before, end - after] = placed
    return found


def _width(parenthesis: cst.CSTNode) -> int:
    return len(cst.Module([]).code_for_node(parenthesis).encode())


def _captured(place: Place, source: Source) -> dict[Tree, Tree]:
    """What the names of a pattern stand for, as expressions: a variable, a constant, else the text of the source."""
    found: dict[Tree, Tree] = {}
    for name, captured in place.captures.items():
        if isinstance(captured, ast.Name):
            found['match', name] = ('frame', captured.id)
        elif isinstance(captured, ast.Constant) and isinstance(captured.value, (bool, int, float, str)):
            found['match', name] = ('c', captured.value)
        else:
            nodes = captured if isinstance(captured, (tuple, list)) else (captured,)
            texts = [ast.get_source_segment(source.text, node) or '' for node in nodes]
            found['match', name] = ('c', ', '.join(texts)[:LONGEST_TEXT])
    return found
