# SPDX-License-Identifier: Apache-2.0
"""The run's books beside its spans: rules, processes and metrics, in bounded memory."""

from __future__ import annotations

from lens_auto.collect.rollcall import RAY, RAY_PROGRAMS, UNREPORTED, WORKER
from lens_auto.collect.totals import STATS, MetricRow, ProcessRow, RuleRow, taken
from lens_auto.record import format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from lens_auto.collect.member import Member
    from lens_auto.record.reader import Identity

_MOST_METRICS = 500
_MOST_PROCESSES = 5000
_MOST_REASONS = 20
_NONE = (0, 0, 0, 0)
_WORKER_PROGRAM = 'default_worker.py'


class Ledger:
    """Rows that grow as the run goes.

    Attributes:
        rules: Rule key -> row.
        marks: Rule key -> {span or metric name: label or metric key of the rule that it shows}, as long as not seen.
        metrics: (name, instrument) -> row.
        processes: (pid, start ticks) -> row; a node has each pair once.
        settings: Fields that a `resource` rule changed in the program.
        uncounted: Processes beyond the limit.
        others: Gives the rules of files that seemed to have nothing to do with the run, for when one of them shows up.
        reach: Why workers of a cluster cannot be reached, as the program found out.
    """

    def __init__(self) -> None:
        self.rules: dict[str, RuleRow] = {}
        self.others: Callable[[], list[dict[str, Any]]] | None = None
        self.marks: dict[str, dict[str, str]] = {}
        self.metrics: dict[tuple[str, str], MetricRow] = {}
        self.processes: dict[tuple[int, int], ProcessRow] = {}
        self.settings: dict[str, Any] = {}
        self.uncounted = 0
        self.reach: dict[str, Any] = {}

    def know_rules(self, rules: list[dict[str, Any]]) -> None:
        """Name the rules of the plan, so that one that never matches has a row too.

        Args:
            rules: key, kind, group, name, where, targets, on, labels, keys and marks of each.
        """
        for rule in rules:
            row = self.rule(str(rule.get('key', '')))
            for field in ('kind', 'group', 'name', 'where'):
                setattr(row, field, str(rule.get(field) or ''))
            row.targets = list(rule.get('targets') or [])
            row.name = row.name or ', '.join(row.targets[:1])
            row.labels = list(rule.get('labels') or [])
            row.keys = list(rule.get('keys') or [])
            if rule.get('marks'):
                self.marks[row.key] = dict(rule['marks'])
            # One that recorded before the program's own config switched it off was on.
            row.on = bool(rule.get('on', True)) or row.spans > 0

    def rule(self, key: str) -> RuleRow:
        """The row of a rule.

        Args:
            key: Its key.
        """
        row = self.rules.get(key)
        if row is None and key and self.others is not None:
            others, self.others = self.others, None
            self.know_rules(others())
            row = self.rules.get(key)
        if row is None:
            row = self.rules[key] = RuleRow(key)
        return row

    def look_for_modules(self, absent: Callable[[str], str]) -> None:
        """The run is over: of rules no process imported a module for, say which of them name one that is not there.

        Args:
            absent: What a package lacks of a module, '' for nothing.
        """
        used = {row.where.rpartition(':')[0] for row in self.rules.values() if row.processes}
        for row in self.rules.values():
            if row.on and row.targets and not row.processes and not row.missing:
                if row.where.rpartition(':')[0] in used:
                    lacks = [absent(target.partition(':')[0]) for target in row.targets]
                    if all(lacks):
                        row.missing = dict.fromkeys(lacks, 1)

    def recorded(self, member: Member, key: str, name: str, calls: int, spans: int, error: bool, ns: int) -> None:
        """Count what a rule recorded: of a process that is killed, its own figures and labels may be a second old.

        Args:
            member: The process.
            key: Of the rule; '' for what the program records by hand.
            name: Of the span or metric.
            calls: Calls that this stands for.
            spans: Spans or points.
            error: The span ended with an error.
            ns: Time inside it.
        """
        counts = member.counted.get(key)
        if counts is None:
            counts = member.counted[key] = [0, 0, 0, 0]
        counts[0] += calls
        counts[1] += spans
        counts[2] += error
        counts[3] += ns
        marks = self.marks.get(key)
        if marks and name in marks:
            self.rule(key).saw([marks.pop(name)])

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
        elif what == format.REACH:
            self.reach.update({str(name): str(item) for name, item in fields.items()})

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
        if row.role != WORKER:
            row.role = str(told.get('lens.role') or row.role)
        row.rank = rank if isinstance(rank, int) else row.rank
        row.python = str(told.get('process.runtime.version') or row.python)
        if row.command != '-':  # it calls itself python
            row.command = str(told.get('process.command') or row.command)
        if row.outcome in ('', UNREPORTED):
            row.outcome, row.reason = 'armed', ''
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
        if row.command == _WORKER_PROGRAM:
            row.role = WORKER
        elif row.role != WORKER and row.reason.removeprefix('helper: ') in RAY_PROGRAMS:
            row.role = RAY

    def missed(self, who: Identity, role: str, command: str, reason: str) -> None:
        """Take a process that never reported; should it report later, that counts.

        Args:
            who: The process.
            role: 'worker', or 'python'.
            command: Its program.
            reason: Why it did not.
        """
        row = self.process(who)
        row.role, row.outcome, row.reason, row.command = role, UNREPORTED, reason, command

    def settle(self, member: Member) -> None:
        """A process has ended: add its own counts to the run's.

        Args:
            member: The process.
        """
        add_stats(self.rules, member)
        member.stats, member.counted = {}, {}

    def dump(self) -> list[Any]:
        """Plain data for the checkpoint."""
        return [
            [row.values() for row in self.rules.values()],
            [row.values() for row in self.metrics.values()],
            [row.values() for row in self.processes.values()],
            self.settings,
            self.uncounted,
            self.reach,
        ]

    def load(self, plain: list[Any]) -> None:
        """Take back what `dump` gave.

        Args:
            plain: Its answer.
        """
        self.rules = {row[0]: taken(RuleRow(), row) for row in plain[0]}
        self.metrics = {(row[0], row[1]): taken(MetricRow(), row) for row in plain[1]}
        self.processes = {(row[1], row[2]): taken(ProcessRow(), row) for row in plain[2]}
        self.settings, self.uncounted, self.reach = plain[3:]


def add_stats(rules: dict[str, RuleRow], member: Member) -> None:
    """Add one process's counts to the rules'.

    Args:
        rules: Rule key -> row; changed.
        member: The process.
    """
    for key, told in member.stats.items():
        row = rules.get(key)
        if row is None:
            row = rules[key] = RuleRow(key)
        counted = member.counted.get(key, _NONE)
        for place, (name, count) in enumerate(zip(STATS, told, strict=False)):
            setattr(row, name, getattr(row, name) + (max(count, counted[place]) if place < 4 else count))
    for key, counted in member.counted.items():
        row = rules.get(key) if key not in member.stats else None
        if row is not None:
            for name, count in zip(STATS, counted, strict=False):
                setattr(row, name, getattr(row, name) + count)


def _count(reasons: dict[str, int], reason: str, count: int = 1) -> None:
    if reason not in reasons and len(reasons) >= _MOST_REASONS:
        reason = 'other reasons'
    reasons[reason] = reasons.get(reason, 0) + count
