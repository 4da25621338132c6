# SPDX-License-Identifier: Apache-2.0
"""The summary's table: the tree of span names, with the time each took and its share of the step."""

from __future__ import annotations

from lens_auto.collect.distribution import quantile
from lens_auto.collect.figures import number, percent, time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lens_auto.collect.look import Look
    from lens_auto.collect.totals import SpanRow

_ROWS = 40
_SIBLINGS = 12
_DEEPEST = 8
_HEADS = ('count', 'total', 'mean', 'p50', 'p95', 'of step')
_WIDTHS = (7, 10, 9, 9, 9, 8)


class _Row:
    __slots__ = ('children', 'row')

    def __init__(self, row: SpanRow) -> None:
        self.row = row
        self.children: list[_Row] = []


def draw(rows: list[SpanRow], look: Look) -> list[str]:
    """The table's lines.

    Args:
        rows: Span names and their counts.
        look: How to draw them.
    """
    top = _tree(rows)
    names = look.width - sum(_WIDTHS)
    lines = [look.dim('span'.ljust(names) + ''.join(h.rjust(w) for h, w in zip(_HEADS, _WIDTHS, strict=True)))]
    budget = [_ROWS]
    for node in _by_time(top):
        _draw(node, '', '', None, lines, names, look, budget)
    return lines


def _tree(rows: list[SpanRow]) -> list[_Row]:
    nodes: dict[tuple[str, ...], _Row] = {}
    top: list[_Row] = []
    for row in sorted(rows, key=lambda one: len(one.path)):
        path = tuple(row.path)
        node = nodes[path] = _Row(row)
        above = nodes.get(path[:-1])
        (above.children if above else top).append(node)
    return top


def _by_time(nodes: list[_Row]) -> list[_Row]:
    return sorted(nodes, key=lambda node: (-_spent(node), node.row.path[-1]))


def _spent(node: _Row) -> int:
    """Nanoseconds of a row; of one that never ended, those of the rows below."""
    return node.row.total or sum(_spent(child) for child in node.children)


def _draw(
    node: _Row,
    stem: str,
    tail: str,
    step: SpanRow | None,
    lines: list[str],
    names: int,
    look: Look,
    budget: list[int],
) -> None:
    """Add a row and those below it.

    `stem` is what stands before its name, `tail` what stands before those of its children.
    """
    if budget[0] <= 0:
        return
    budget[0] -= 1
    row = node.row
    is_step = _is_step(row, step)
    if is_step:
        step = row
    lines.append(_line(stem, row.path[-1], _columns(row, step), names, look, is_step, row))
    children = _by_time(node.children)
    shown = children[:_SIBLINGS] if tail.count(' ') < 3 * _DEEPEST else []
    rest = children[len(shown) :]
    extra: list[tuple[str, list[str]]] = []
    if rest:
        spent = sum(_spent(child) for child in rest)
        extra.append((f'{len(rest)} more', ['', time(spent), '', '', '', '']))
    if is_step and row.watched and children:  # no phase is recorded: nobody knows what it did
        part = row.idle / row.watched
        extra.append(('idle', ['', time(row.idle), '', '', '', percent(part)]))
    last = len(shown) + len(extra) - 1
    for place, child in enumerate(shown):
        _draw(
            child,
            tail + _branch(place == last, look),
            tail + _trunk(place == last, look),
            step,
            lines,
            names,
            look,
            budget,
        )
    for place, (name, columns) in enumerate(extra, len(shown)):
        lines.append(_line(tail + _branch(place == last, look), name, columns, names, look, False, None))


def _is_step(row: SpanRow, step: SpanRow | None) -> bool:
    return step is None and (row.group == 'step' or (row.linked and row.watched > 0))


def _branch(last: bool, look: Look) -> str:
    if look.unicode:
        return '└─ ' if last else '├─ '
    return '`- ' if last else '|- '


def _trunk(last: bool, look: Look) -> str:
    if last:
        return '   '
    return '│  ' if look.unicode else '|  '


def _columns(row: SpanRow, step: SpanRow | None) -> list[str]:
    if not row.count:
        return ['', 'still open', '', '', '', '']
    ordered = sorted(row.sample)
    return [
        number(row.count),
        time(row.total),
        time(row.total / row.count),
        time(quantile(ordered, 0.5)) if row.count > 1 else '',
        time(quantile(ordered, 0.95)) if row.count > 1 else '',
        percent(_share(row, step)) if step is not None else '',
    ]


def _share(row: SpanRow, step: SpanRow) -> float:
    """Part of the step's time: that of an average process, where several share the work."""
    if not step.total:
        return 0.0
    return (row.total / max(1, len(row.processes))) / (step.total / max(1, len(step.processes)))


def _line(stem: str, name: str, columns: list[str], names: int, look: Look, bold: bool, row: SpanRow | None) -> str:
    marks = ''
    if row is not None and row.errors:
        marks += f' ({number(row.errors)} failed)'
    if row is not None and row.truncated:
        marks += f' ({number(row.truncated)} cut short)'
    room = names - len(stem) - len(marks) - 1
    if len(name) > room:
        name = name[: max(1, room - 3)] + '...'
    text = look.dim(stem) + (look.bold(name) if bold else name) + marks
    fill = ' ' * (names - len(stem) - len(name) - len(marks))
    cells = ''.join(cell.rjust(width) for cell, width in zip(columns, _WIDTHS, strict=True))
    return (text + fill + (look.bold(cells) if bold else cells)).rstrip()
