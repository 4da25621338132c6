# SPDX-License-Identifier: Apache-2.0
"""The run's books beside its spans: rules, processes and metrics, in bounded memory."""

from __future__ import annotations

from lens_auto.collect.totals import STATS, MetricRow, ProcessRow, RuleRow, taken
from lens_auto.record import format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from lens_auto.collect.member import Member
    from lens_auto.record.reader import Identity

_MOST_METRICS = 500
_MOST_PROCESSES = 5000
_MOST_REASONS = 20


class Ledger:
    """Rows that grow as the run goes.

    Attributes:
        rules: Rule key -> row.
        metrics: (name, instrument) -> row.
        processes: (pid, start ticks) -> row; a node has each pair once.
        settings: Fields that a `resource` rule changed in the program.
        uncounted: Processes beyond the limit.
    """

    def __init__(self) -> None:
        self.rules: dict[str, RuleRow] = {}
        self.metrics: dict[tuple[str, str], MetricRow] = {}
        self.processes: dict[tuple[int, int], ProcessRow] = {}
        self.settings: dict[str, Any] = {}
        self.uncounted = 0

    def know_rules(self, rules: list[dict[str, Any]]) -> None:
        """Name the rules of the plan, so that one that never matches has a row too.

        Args:
            rules: key, kind, group, name, where, targets, on, labels and keys of each.
        """
        for rule in rules:
            row = self.rule(str(rule.get('key', '')))
            for field in ('kind', 'group', 'name', 'where'):
                setattr(row, field, str(rule.get(field) or ''))
            row.targets = list(rule.get('targets') or [])
            row.name = row.name or ', '.join(row.targets[:1])
            row.labels = list(rule.get('labels') or [])
            row.keys = list(rule.get('keys') or [])
            # One that recorded before the program's own config switched it off was on.
            row.on = bool(rule.get('on', True)) or row.spans > 0

    def rule(self, key: str) -> RuleRow:
        """The row of a rule.

        Args:
            key: Its key.
        """
        row = self.rules.get(key)
        if row is None:
            row = self.rules[key] = RuleRow(key)
        return row

    def point(self, name: str, instrument: str, unit: str, value: float, at: int) -> None:
        """Count a metric point.

        Args:
            name: Metric name.
            instrument: Its instrument.
            unit: Its unit.
            value: Value, increment or observation.
            at: Wall-clock nanoseconds.
        """
        row = self.metrics.get((name, instrument))
        if row is None:
            if len(self.metrics) >= _MOST_METRICS:
                return
            row = self.metrics[name, instrument] = MetricRow(name, instrument, unit)
            row.first_ns, row.first = at, value
        if at < row.first_ns:
            row.first_ns, row.first = at, value
        if at >= row.last_ns:
            row.last_ns, row.last = at, value
        row.count += 1
        row.total += value

    def report(self, member: Member, what: str, fields: Mapping[str, Any]) -> None:
        """Take a word of the agent about itself.

        Args:
            member: The process it comes from.
            what: The kind of report.
            fields: What it says.
        """
        key = str(fields.get('key', ''))
        if what == format.STATS:
            for rule, counts in fields.items():
                member.stats[rule] = list(counts)
        elif what == format.SEEN:
            for rule, patterns in fields.items():
                self.rule(rule).saw(map(str, patterns))
        elif what == format.PATCHED:
            # One rule may patch several places of a process: it matched that process once.
            if key not in member.matched:
                member.matched.add(key)
                self.rule(key).processes += 1
        elif what == format.MISSING:
            _count(self.rule(key).missing, str(fields.get('reason', '')))
        elif what == format.FAULT:
            said = f'{fields.get("type", "?")} in {fields.get("where", "?")}'
            _count(self.rule(key).faults, said, int(fields.get('count') or 1))
        elif what == format.DROPPED:
            # Cumulative in each process: the last word counts.
            member.dropped[str(fields.get('reason', ''))] = int(fields.get('records') or 0)
        elif what == format.SETTINGS:
            self.settings.update(fields)
        elif what == format.STOOD_DOWN:
            self.process(member.who).reason = str(fields.get('reason', ''))

    def process(self, who: Identity) -> ProcessRow:
        """The row of a process; beyond the limit one that is thrown away.

        Args:
            who: The process.
        """
        host, pid, start = who
        row = self.processes.get((pid, start))
        if row is None:
            row = ProcessRow(host, pid, start)
            if len(self.processes) < _MOST_PROCESSES:
                self.processes[pid, start] = row
            else:
                self.uncounted += 1
        return row

    def enter(self, member: Member) -> None:
        """Write what a process's journal says of it into its row.

        Args:
            member: The process.
        """
        row = self.process(member.who)
        told = member.told
        rank = told.get('dl.rank')
        row.host = member.who[0]
        row.role = str(told.get('lens.role') or row.role)
        row.rank = rank if isinstance(rank, int) else row.rank
        row.python = str(told.get('process.runtime.version') or row.python)
        row.command = str(told.get('process.command') or row.command)
        row.outcome = row.outcome or 'armed'
        row.spans, row.points = member.spans, member.points
        row.alive = not member.dead

    def listed(self, host: str, line: str) -> None:
        """Take a line of processes.tsv, which stage 1 writes in every process, journal or not.

        Args:
            host: The node.
            line: pid, start ticks, python, role, outcome, reason, argv[0], with tabs between.
        """
        fields = line.split('\t')
        if len(fields) < 6 or not fields[0].isdigit() or not fields[1].isdigit():
            return
        row = self.process((host, int(fields[0]), int(fields[1])))
        # The last line counts: a process may become another program (a launcher within the run does).
        row.python, row.outcome, row.reason = fields[2].removeprefix('python').strip(), fields[4], fields[5]
        row.role = row.role or fields[3]
        row.command = (fields[6] if len(fields) > 6 else '') or row.command

    def settle(self, member: Member) -> None:
        """A process has ended: add its own counts to the run's.

        Args:
            member: The process.
        """
        add_stats(self.rules, member)
        member.stats = {}

    def dump(self) -> list[Any]:
        """Plain data for the checkpoint."""
        return [
            [row.values() for row in self.rules.values()],
            [row.values() for row in self.metrics.values()],
            [row.values() for row in self.processes.values()],
            self.settings,
            self.uncounted,
        ]

    def load(self, plain: list[Any]) -> None:
        """Take back what `dump` gave.

        Args:
            plain: Its answer.
        """
        self.rules = {row[0]: taken(RuleRow(), row) for row in plain[0]}
        self.metrics = {(row[0], row[1]): taken(MetricRow(), row) for row in plain[1]}
        self.processes = {(row[1], row[2]): taken(ProcessRow(), row) for row in plain[2]}
        self.settings, self.uncounted = plain[3:]


def add_stats(rules: dict[str, RuleRow], member: Member) -> None:
    """Add one process's counts to the rules'.

    Args:
        rules: Rule key -> row; changed.
        member: The process.
    """
    for key, counts in member.stats.items():
        row = rules.get(key)
        if row is None:
            row = rules[key] = RuleRow(key)
        for name, count in zip(STATS, counts, strict=False):
            setattr(row, name, getattr(row, name) + count)


def _count(reasons: dict[str, int], reason: str, count: int = 1) -> None:
    if reason not in reasons and len(reasons) >= _MOST_REASONS:
        reason = 'other reasons'
    reasons[reason] = reasons.get(reason, 0) + count
