# SPDX-License-Identifier: Apache-2.0
"""Says what is there instead, where a module does not hold what a rule expects."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from lens_auto.rewrite.places import Found, Place, Wanted
    from lens_auto.rewrite.scopes import Scope

    _T = TypeVar('_T')

SHOWN = 3
LONGEST_LINE = 100
_ALIKE = 0.2  # of the pairs of letters in both


def wrong_number(found: Found, lines: list[str]) -> str:
    """More or fewer places matched than the rule expects, but not none.

    Args:
        found: What was found.
        lines: The module's source.
    """
    times = 'once' if len(found.matches) == 1 else f'{len(found.matches)} times'
    least, most = found.wanted.expect
    expected = f'{least} is' if least == most == 1 else f'{least} are' if least == most else f'{least} to {most} are'
    if most is None:
        expected = f'at least {least} are'
    shown = _shown([place.lineno for place in found.matches], lines)
    return f'{_subject(found.wanted)} is there {times}, {expected} expected: {shown}'


def no_scope(wanted: Wanted, scopes: list[Scope]) -> str:
    """The module has no function or class of the name that the rule names.

    Args:
        wanted: What was wanted.
        scopes: The module's scopes.
    """
    near = _nearest(wanted.qualname, [(scope.qualname, scope) for scope in scopes if scope.path])
    names = ', '.join(f'{scope.qualname} (line {getattr(scope.node, "lineno", 0)})' for scope in near)
    return f'there is no {wanted.qualname} in it' + (f'; nearest: {names}' if names else '')


def no_match(found: Found, elsewhere: list[Place], candidates: list[int], lines: list[str]) -> str:
    """The rule's scope is there, and nothing in it matches.

    Args:
        found: What was found.
        elsewhere: Where in the module the pattern matches outside of that scope.
        candidates: Lines of the nodes of the rule's kind inside it.
        lines: The module's source.
    """
    wanted = found.wanted
    subject = _subject(wanted)
    if elsewhere:
        names = [f'{place.qualname or "the module itself"} (line {place.lineno})' for place in elsewhere[:SHOWN]]
        return f'{subject} is not there; it is in {", ".join(names)}'
    text = '' if wanted.pattern is None else wanted.pattern.text
    near = _nearest(text, [(_line(lines, line), line) for line in dict.fromkeys(candidates)])
    if not near:
        return f'{subject} is not there'
    return f'{subject} is not there; nearest: {_shown(near, lines)}'


def _subject(wanted: Wanted) -> str:
    what = wanted.qualname if wanted.pattern is None else f'`{wanted.pattern.text}`'
    return what if wanted.pattern is None or not wanted.qualname else f'{what} in {wanted.qualname}'


def _line(lines: list[str], number: int) -> str:
    return lines[number - 1].strip()[:LONGEST_LINE] if 0 < number <= len(lines) else ''


def _shown(found: list[int], lines: list[str]) -> str:
    once = list(dict.fromkeys(found))  # two calls on one line are shown once
    texts = [f'line {line} `{text}`' if (text := _line(lines, line)) else f'line {line}' for line in once[:SHOWN]]
    return ', '.join(texts) + (', ...' if len(once) > SHOWN else '')


def _nearest(text: str, among: list[tuple[str, _T]]) -> list[_T]:
    """What is most like a text, the nearest first; nothing that has little in common with it."""
    pairs = _pairs(text)
    likeness: list[tuple[float, int]] = []
    for index, (other, _) in enumerate(among):
        theirs = _pairs(other)
        likeness.append((-2 * len(pairs & theirs) / max(1, len(pairs) + len(theirs)), index))
    return [among[index][1] for like, index in sorted(likeness)[:SHOWN] if like < -_ALIKE]


def _pairs(text: str) -> set[str]:
    return {text[at : at + 2] for at in range(len(text) - 1)}
