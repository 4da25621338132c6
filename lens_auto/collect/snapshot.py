# SPDX-License-Identifier: Apache-2.0
"""The state of a collector as `Totals`: rows for the summary and run.json."""

from __future__ import annotations

from time import monotonic_ns

from lens_auto.collect.distribution import KEPT, spread
from lens_auto.collect.ledger import add_stats
from lens_auto.collect.reasons import switched_off
from lens_auto.collect.rollcall import counts
from lens_auto.collect.totals import OpenRow, RuleRow, SpanRow, filled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lens_auto.collect.intake import Intake
    from lens_auto.collect.member import Member
    from lens_auto.collect.tally import Node
    from lens_auto.collect.totals import Totals

_LONG_NS = 60_000_000_000
_MOST_OPEN = 200


def fill(totals: Totals, intake: Intake, members: Iterable[Member], faults: Mapping[str, int]) -> None:
    """Write the collector's present state into totals.

    Args:
        totals: Changed.
        intake: The state of the run.
        members: Processes that have not been settled.
        faults: The collector's own.
    """
    rules = {key: filled(RuleRow(), row.plain()) for key, row in intake.ledger.rules.items()}
    dropped = dict(intake.dropped)
    now = monotonic_ns()
    totals.open = []
    for name, item in intake.ledger.settings.items():
        totals.settings[name] = [item, "the program's own config"]
    for member in members:
        intake.ledger.enter(member)
        add_stats(rules, member)
        for reason, records in member.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + records
        for opened in member.opened.values():
            start, name = opened[2], opened[3]
            if now - start > _LONG_NS and len(totals.open) < _MOST_OPEN:
                totals.open.append(OpenRow(name, member.label, start + member.shift))
    totals.rules = [row for key, row in rules.items() if key]
    for row in totals.rules:
        row.off = switched_off(row.kind, totals.settings)
    totals.faults = dict(faults)
    for row in rules.values():
        for what, count in row.faults.items():
            totals.faults[what] = totals.faults.get(what, 0) + count
    totals.dropped = {reason: records for reason, records in dropped.items() if records}
    totals.counts = dict(intake.counts)
    totals.processes = list(intake.ledger.processes.values())
    totals.roll_call = counts(totals.processes)
    if intake.ledger.reach:
        totals.roll_call['reach'] = dict(intake.ledger.reach)
    totals.metrics = list(intake.ledger.metrics.values())
    totals.spans = span_rows(intake.tally.settle())


def span_rows(root: Node) -> list[SpanRow]:
    """The tree as rows, parents before children.

    Args:
        root: The tally's tree.
    """
    rows: list[SpanRow] = []
    work: list[tuple[Node, list[str]]] = [(child, [child.name]) for child in root.children.values()]
    while work:
        node, path = work.pop(0)
        d = node.durations
        row = SpanRow(path)
        row.count, row.total, row.least, row.most = d.count, d.total, d.least, d.most
        for name in ('errors', 'truncated', 'bucket', 'group', 'linked', 'idle', 'watched'):
            setattr(row, name, getattr(node, name))
        row.sample = spread(d.sample, KEPT)
        row.processes = {label: list(mine) for label, mine in node.processes.items()}
        rows.append(row)
        work += [(child, [*path, child.name]) for child in node.children.values()]
    return rows
