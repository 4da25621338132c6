# SPDX-License-Identifier: Apache-2.0
"""Holds a run of the matrix program against its table: one line a cell, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.helpers.ray_program import Traced, answers
from tests.helpers.run import Done, Span
from tests.ray.programs.ray_matrix.table import EITHER, PHASE, Body, Cell

COLUMNS = ('spans', 'parent', 'resource', 'hidden', 'duplicates', 'same')


@dataclass
class Row:
    """A cell: how many of its spans are right in each respect, and the faults in words."""

    cell: str
    spans: str = ''
    parent: str = ''
    resource: str = ''
    hidden: int = 0
    duplicates: int = 0
    same: str = ''
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        values = (str(getattr(self, column)) for column in COLUMNS)
        cells = '  '.join(f'{value:>10}' for value in values)
        return f'{self.cell:<20}{cells}' + (f'   {"; ".join(self.faults)}' if self.faults else '')


def heading() -> str:
    """The line above the rows."""
    return f'{"cell":<20}' + '  '.join(f'{column:>10}' for column in COLUMNS)


class Matrix:
    """Compares the cells of a plain and a traced run.

    Args:
        plain: The program without us.
        traced: The same under `lens-instrument`.
    """

    def __init__(self, plain: Done, traced: Traced) -> None:
        self._plain = {answer['cell']: answer for answer in answers(plain.stdout) if 'cell' in answer}
        self._traced = {answer['cell']: answer for answer in answers(traced.done.stdout) if 'cell' in answer}
        self._spans = traced.spans
        self._by_id = {span.id: span for span in self._spans}

    def row(self, cell: Cell) -> Row:
        """How a cell fared."""
        row = Row(cell.name)
        phases = [span for span in self._spans if span.name == f'phase_{cell.name}']
        if len(phases) != 1:
            row.faults.append(f'{len(phases)} spans of the driver')
        expected = sum(body.times for body in cell.bodies)
        found = {body: self._of(body, cell, phases) for body in cell.bodies}
        right = {body: list(self._below(body, spans, phases)) for body, spans in found.items()}
        row.spans = f'{sum(map(len, found.values()))}/{expected}'
        row.parent = f'{sum(map(len, right.values()))}/{expected}'
        row.duplicates = sum(max(0, len(spans) - body.times) for body, spans in found.items())
        placed = 0
        for body, spans in found.items():
            if len(spans) != body.times:
                row.faults.append(f'{len(spans)} of {body.times} {body.name}')
            elif len(right[body]) != body.times:
                above = {self._name(span.parent) for span in spans if span not in right[body]}
                row.faults.append(f'{body.name} under {sorted(above)}')
            wrong = [fault for span in spans for fault in _resource_faults(body, span)]
            placed += sum(not _resource_faults(body, span) for span in spans)
            row.faults += sorted(set(wrong)) + list(_ends(body, spans))
        row.resource = f'{placed}/{expected}'
        self._same(row)
        return row

    def _of(self, body: Body, cell: Cell, phases: list[Span]) -> list[Span]:
        """The spans of a body that belong to a cell: of its name, begun while the cell ran.

        Cells run one after the other; a name that two cells share is told apart by time alone, so that a span with a
        wrong parent is still found.
        """
        spans = [span for span in self._spans if span.name == body.name]
        starts = sorted(span.start for span in self._spans if span.name.startswith('phase_'))
        if not phases:
            return spans
        begin = phases[0].start
        end = min((start for start in starts if start > begin), default=1 << 63)
        return [span for span in spans if begin <= span.start < end or cell.name == 'outliving_task']

    def _below(self, body: Body, spans: list[Span], phases: list[Span]) -> Iterator[Span]:
        for span in spans:
            above = self._by_id.get(span.parent)
            if body.parent == EITHER:
                yield span
            elif body.parent == PHASE:
                if phases and span.parent == phases[0].id and span.trace == phases[0].trace:
                    yield span
            elif above is not None and above.name == body.parent and span.trace == above.trace:
                yield span

    def _name(self, span: str) -> str:
        return self._by_id[span].name if span in self._by_id else 'nothing'

    def _same(self, row: Row) -> None:
        plain, traced = self._plain.get(row.cell), self._traced.get(row.cell)
        row.hidden = traced['hidden'] if traced else 0
        if row.hidden:
            row.faults.append(f'saw {traced}')
        row.same = 'yes' if plain is not None and plain == traced else 'no'
        if row.same == 'no':
            row.faults.append(f'without us {plain}, with us {traced}')


def _resource_faults(body: Body, span: Span) -> list[str]:
    resource: dict[str, Any] = span.resource
    expected: dict[str, Any] = {'lens.role': 'worker'}
    if body.actor_name is not None:
        expected['ray.actor.name'] = body.actor_name
    faults = [f'{key}={resource.get(key)!r}' for key, value in expected.items() if resource.get(key) != value]
    # A class of Ray's is told with its module or without.
    if str(resource.get('ray.actor.class', '')).rpartition('.')[2] != body.actor:
        faults.append(f'ray.actor.class={resource.get("ray.actor.class")!r}')
    ids = ('ray.job.id', 'ray.node.id') + (('ray.actor.id',) if body.actor else ())
    faults += [f'{key}={resource.get(key)!r}' for key in ids if not _hex(resource.get(key))]
    if not body.actor and 'ray.actor.id' in resource:
        faults.append('ray.actor.id of a task')
    return [f'{body.name}: {fault}' for fault in faults]


def _hex(text: object) -> bool:
    return isinstance(text, str) and bool(text) and set(text) <= set('0123456789abcdef')


def _ends(body: Body, spans: list[Span]) -> Iterator[str]:
    """What is wrong with the attempts and ends of a body's spans."""
    attempts = tuple(span.attributes.get('ray.task.attempt', 0) for span in spans)
    expected = body.attempts or (0,) * len(spans)
    # Ray 2.40 and 2.48 count the restarts of an actor for its methods, not for its `__init__`.
    if attempts != expected and not (body.name.endswith('.__init__') and not any(attempts)):
        yield f'{body.name}: attempts {attempts}'
    if sum(span.truncated for span in spans) != body.cut:
        yield f'{body.name}: {sum(span.truncated for span in spans)} cut off'
    if spans and spans[-1].error != body.error and not spans[-1].truncated:
        yield f'{body.name}: error is {spans[-1].error}'


def matrix(plain: Done, traced: Traced, cells: Iterable[Cell]) -> tuple[str, list[str]]:
    """The printed matrix, and the names of the cells that are not as they must be."""
    compared = Matrix(plain, traced)
    rows = [compared.row(cell) for cell in cells]
    return '\n'.join([heading(), *map(str, rows)]), [row.cell for row in rows if row.faults]
