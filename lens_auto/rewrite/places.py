# SPDX-License-Identifier: Apache-2.0
"""Where in a module the things wanted are, and whether they are what the rule expects."""

from __future__ import annotations

from _ast import AST, AsyncFor, AsyncFunctionDef, AsyncWith, Attribute, Call, For, FunctionDef, Name, While, With

from lens_auto.rewrite.drift import no_match, no_scope, wrong_number
from lens_auto.rewrite.refusals import Refusals
from lens_auto.rewrite.scopes import awaited, matches_name, own, scopes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _ast import Module
    from collections.abc import Iterable
    from typing import Any

    from lens_auto.rewrite.pattern import Captures, Pattern
    from lens_auto.rewrite.scopes import Scope

NODES: dict[str, tuple[type[AST], ...]] = {
    'loop': (For, AsyncFor, While),
    'block': (With, AsyncWith),
    'call': (Call,),
    'function': (FunctionDef, AsyncFunctionDef),
}
"""The kinds of things that can be wanted, and the nodes they are."""


class Wanted:
    """One thing a rule wants of a module.

    Attributes:
        key: The rule's key.
        kind: 'loop', 'block', 'call' or 'function'.
        qualname: The scope to look in, '' for code at module level; of a function, its name. `<locals>` may be left
            out, and the last part may hold one `*`.
        pattern: What it looks like; None for a function.
        expect: How many there must be, at least and at most; None for no most.
        force: Edit it where the code is compiled by something other than Python, too.
    """

    __slots__ = ('expect', 'force', 'key', 'kind', 'pattern', 'qualname')

    def __init__(
        self,
        key: str,
        kind: str,
        qualname: str,
        pattern: Pattern | None,
        expect: tuple[int, int | None] = (1, 1),
        force: bool = False,
    ):
        """See the class.

        Args:
            key: See the class.
            kind: See the class.
            qualname: See the class.
            pattern: See the class.
            expect: See the class.
            force: See the class.

        Raises:
            KeyError: There is no such kind.
            ValueError: The kind and the pattern do not go together.
        """
        of = 'function' if pattern is None else pattern.kind
        if NODES[kind] != NODES[of]:
            raise ValueError(f'a {kind} with the pattern of a {of}')
        self.key = key
        self.kind = kind
        self.qualname = qualname.replace('.<locals>', '')
        self.pattern = pattern
        self.expect = expect
        self.force = force


class Place:
    """A node that matched.

    Attributes:
        kind: As of what was wanted.
        node: The loop, with statement, call or def.
        lineno: Its first line, from 1; of a def that of `def`, not of its decorators.
        col_offset: Its first column, in bytes of UTF-8.
        end_lineno: Its last line.
        end_col_offset: The column after its end.
        qualname: The scope it is in; of a def, its own.
        captures: What the pattern captured: an expression, or a tuple of nodes for a run.
        item: Of a with statement, the index of the first item that matched.
        awaited: Of a call: an `await` waits for it, and the span covers that.
        refused: Why it is not edited, or ''.
        scope: The scope it is in; of a def, its own.
    """

    __slots__ = (
        'awaited',
        'captures',
        'col_offset',
        'end_col_offset',
        'end_lineno',
        'item',
        'kind',
        'lineno',
        'node',
        'qualname',
        'refused',
        'scope',
    )

    def __init__(self, kind: str, node: Any, scope: Scope, captures: Captures, item: int = 0, awaited: bool = False):
        """See the class.

        Args:
            kind: See the class.
            node: See the class.
            scope: See the class.
            captures: See the class.
            item: See the class.
            awaited: See the class.
        """
        self.kind = kind
        self.node = node
        self.lineno: int = node.lineno
        self.col_offset: int = node.col_offset
        self.end_lineno: int = node.end_lineno
        self.end_col_offset: int = node.end_col_offset
        self.qualname = scope.qualname
        self.scope = scope
        self.captures = captures
        self.item = item
        self.awaited = awaited
        self.refused = ''


class Found:
    """What became of one thing wanted.

    Attributes:
        wanted: What was wanted.
        matches: All places that matched, in the order of the source.
        places: Those to edit: none where there are more or fewer than expected.
        problem: Why one or all are not edited, in a sentence, or ''.
    """

    __slots__ = ('matches', 'places', 'problem', 'wanted')

    def __init__(self, wanted: Wanted, matches: list[Place]):
        """See the class.

        Args:
            wanted: See the class.
            matches: See the class.
        """
        self.wanted = wanted
        self.matches = matches
        self.places: list[Place] = []
        self.problem = ''


def find(tree: Module, wanted: Iterable[Wanted], source: str = '') -> list[Found]:
    """Look for things in a module.

    Args:
        tree: Its syntax tree.
        wanted: What to look for.
        source: Its source, to quote from where something is not as expected.

    Returns:
        What was found, in the order of `wanted`.
    """
    found = [Found(each, []) for each in wanted]
    if not found:
        return found
    refusals = Refusals(tree)
    lines = source.splitlines()
    all_scopes = list(scopes(tree))
    named: dict[str, list[Found]] = {}
    for each in found:
        named.setdefault(each.wanted.qualname, []).append(each)
    starred = [each for each in found if '*' in each.wanted.qualname]
    for scope in all_scopes:
        here = named.get(scope.qualname, ())
        more = [each for each in starred if matches_name(each.wanted.qualname, scope.qualname)]
        if here or more:
            _look(scope, [*here, *more], refusals)
    for each in found:
        each.matches.sort(key=lambda place: (place.lineno, place.col_offset))
        _judge(each, all_scopes, lines)
    return found


def _look(scope: Scope, found: list[Found], refusals: Refusals) -> None:
    node = scope.node
    for each in found:
        if each.wanted.kind == 'function' and isinstance(node, (FunctionDef, AsyncFunctionDef)):
            place = Place('function', node, scope, {})
            place.refused = refusals.of(scope, each.wanted.force) or refusals.of_function(node)
            each.matches.append(place)
    patterns = [each for each in found if each.wanted.pattern is not None]
    if not patterns:
        return
    nodes = list(own(node.body))
    waits = awaited(nodes)
    for inner in nodes:
        for each in patterns:
            place = _match(each.wanted, inner, scope, id(inner) in waits)
            if place is not None:
                place.refused = refusals.of(scope, each.wanted.force)
                if isinstance(inner, Call):
                    place.refused = place.refused or refusals.of_call(inner)
                each.matches.append(place)


def _match(wanted: Wanted, node: AST, scope: Scope, waits: bool) -> Place | None:
    if wanted.pattern is None or not isinstance(node, NODES[wanted.kind]):
        return None
    written = _as_written(node) if isinstance(node, Call) else node
    matched = None if written is None else wanted.pattern.match_at(written, waits)
    if matched is None:
        return None
    return Place(wanted.kind, node, scope, matched[1], matched[0], waits)


def _as_written(call: Call) -> Call | None:
    """A call as the program has it, where `lens-codemod` has put its own around what is called.

    Args:
        call: `_lens_call(...)(f)(x)`, which is `f(x)`; or any other.

    Returns:
        The call; None for one that is only there for the codemod.
    """
    func = call.func
    if _is_codemods(func) or (isinstance(func, Call) and _is_codemods(func.func)):
        return None
    if isinstance(func, Call) and isinstance(func.func, Call) and _is_codemods(func.func.func) and len(func.args) == 1:
        return Call(func=func.args[0], args=call.args, keywords=call.keywords)
    return call


def _is_codemods(func: AST) -> bool:
    if isinstance(func, Attribute):
        func = func.value
    return isinstance(func, Name) and func.id.startswith('_lens_')


def _judge(found: Found, all_scopes: list[Scope], lines: list[str]) -> None:
    wanted = found.wanted
    least, most = wanted.expect
    count = len(found.matches)
    if count < least or (most is not None and count > most):
        if count:
            found.problem = wrong_number(found, lines)
        elif wanted.kind == 'function' or not any(
            matches_name(wanted.qualname, scope.qualname) for scope in all_scopes
        ):
            found.problem = no_scope(wanted, all_scopes)
        else:
            found.problem = no_match(found, *_candidates(wanted, all_scopes), lines)
        return
    found.places = [place for place in found.matches if not place.refused]
    refused = {place.refused: place.lineno for place in reversed(found.matches) if place.refused}
    found.problem = '; '.join(f'line {line}: {reason}' for reason, line in reversed(refused.items()))


def _candidates(wanted: Wanted, all_scopes: list[Scope]) -> tuple[list[Place], list[int]]:
    """Where the pattern matches outside of the rule's scope, and the lines of other nodes of its kind inside."""
    elsewhere: list[Place] = []
    lines: list[int] = []
    for scope in all_scopes:
        inside = matches_name(wanted.qualname, scope.qualname)
        for node in own(scope.node.body):
            if isinstance(node, NODES[wanted.kind]):
                if inside:
                    lines.append(getattr(node, 'lineno', 0))
                elif (place := _match(wanted, node, scope, True)) is not None:
                    elsewhere.append(place)
    return elsewhere, lines
