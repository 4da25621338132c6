# SPDX-License-Identifier: Apache-2.0
"""What a traced program left in its spool, as spans, points and reports a test can compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lens_auto.record import format as form
from lens_auto.record.reader import read, segments

Record = tuple[Any, ...]


@dataclass
class Span:
    """A span as journalled; `ended` is False when only its opening record is there."""

    id: bytes
    trace: bytes
    parent: bytes
    name: str
    attributes: dict[str, Any]
    links: list[tuple[bytes, bytes, dict[str, Any]]]
    start: int
    ended: bool = False
    duration: int = 0
    status: int = 0
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def error(self) -> bool:
        return self.status == form.STATUS_ERROR


@dataclass
class Journal:
    """All records of a spool, by process in the order they were stored."""

    records: list[Record]

    @property
    def spans(self) -> list[Span]:
        """Spans in the order they started; one without an opening record (laps) counts from its end."""
        found: dict[bytes, Span] = {}
        for record in self.records:
            if record[0] == form.OPENED:
                _, span, trace, parent, start, name, _, attributes, links = record
                found[span] = Span(span, trace, parent, name, dict(attributes or {}), list(links or ()), start)
            elif record[0] == form.ENDED:
                _, span, trace, parent, start, duration, name, _, status, attributes, links, events = record
                # What the opening record told is not told again.
                told = found[span].attributes if span in found else {}
                attributes = {**told, **(attributes or {})}
                found[span] = Span(
                    span, trace, parent, name, attributes, list(links or ()), start, True, duration, status
                )
                found[span].events = [(name, dict(values or {})) for _, name, values in events or ()]
        return sorted(found.values(), key=lambda span: span.start)

    @property
    def points(self) -> list[tuple[str, float, dict[str, Any]]]:
        return [(r[2], r[5], dict(r[6] or {})) for r in self.records if r[0] == form.POINT]

    @property
    def instruments(self) -> dict[str, tuple[str, str]]:
        return {r[2]: (r[3], r[4]) for r in self.records if r[0] == form.POINT}

    @property
    def resources(self) -> list[dict[str, Any]]:
        return [r[2] for r in self.records if r[0] == form.RESOURCE]

    def reports(self, what: str) -> list[dict[str, Any]]:
        return [r[3] for r in self.records if r[0] == form.REPORT and r[2] == what]

    @property
    def stats(self) -> dict[str, list[int]]:
        """The last word of each rule on its calls, spans, errors, ns, over, unread."""
        return {key: row for report in self.reports(form.STATS) for key, row in report.items()}

    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def tree(self, *shown: str) -> str:
        """Spans as an indented tree: name, `!` for an error, `...` when it never ended, and the attributes `shown`."""
        spans = self.spans
        ids = {span.id for span in spans}
        return '\n'.join(self._lines(b'', spans, ids, 0, shown))

    def _lines(
        self, parent: bytes, spans: list[Span], ids: set[bytes], depth: int, shown: tuple[str, ...]
    ) -> Iterator[str]:
        for span in spans:
            if span.parent == parent or (depth == 0 and span.parent not in ids):
                values = [f' {name}={span.attributes[name]!r}' for name in shown if name in span.attributes]
                yield (
                    '  ' * depth
                    + span.name
                    + ('!' if span.error else '')
                    + ('' if span.ended else '...')
                    + ''.join(values)
                )
                yield from self._lines(span.id, spans, ids, depth + 1, shown)


def journal(spool: Path) -> Journal:
    """All that lies in a spool."""
    return Journal([record for path in segments(str(spool)) for record, _ in read(path)])
