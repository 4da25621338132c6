# SPDX-License-Identifier: Apache-2.0
"""A run told record by record, as the collector would read it, and what came of it."""

from __future__ import annotations

from typing import Any

from lens_auto.collect.intake import Intake
from lens_auto.collect.member import Member
from lens_auto.collect.run import Run
from lens_auto.collect.snapshot import fill
from lens_auto.collect.tail import Tail
from lens_auto.collect.totals import Totals
from lens_auto.record.format import FORMAT
from tests.unit.collect.journals import links_of, span_of, trace_of

MS = 1_000_000


class Story:
    """Records of a run, taken as the collector takes them."""

    def __init__(self) -> None:
        self.run = Run('grpo-41', 'LENS_RUN_ID', 0, 'abc', '', False)
        self.intake = Intake(self.run, {'service_name': 'trainer'}, {}, prints=False)
        self.members: list[Member] = []
        self.at = 0
        self.next = 100

    def member(self, rank: int | None = None) -> Member:
        number = len(self.members) + 1
        member = Member(('node', number, 1), Tail('', ('node', number, 1)), False)
        told: dict[str, Any] = {'lens.role': 'driver' if rank is None else 'rank'}
        if rank is not None:
            told['dl.rank'] = rank
        self.intake.take(member, (0, FORMAT, told, 0, 0, 'boot', number, 1, 0, {}))
        self.members.append(member)
        return member

    def open(self, member: Member, name: str, parent: int | bytes, group: str = '', links: Any = None) -> int:
        self.next += 1
        items = {'lens.group': group} if group else None
        record = (1, span_of(self.next), trace_of(7), span_of(parent), self.at, name, 'r', items, links_of(links))
        self.intake.take(member, record)
        return self.next

    def end(
        self, member: Member, number: int, name: str, parent: int | bytes, start: int, links: Any = None, **more: Any
    ) -> None:
        items = more.get('items')
        ids = (span_of(number), trace_of(7), span_of(parent))
        status = more.get('status', 0)
        record = (2, *ids, start, self.at - start, name, 'r', status, items, links_of(links), None)
        self.intake.take(member, record)

    def span(self, member: Member, name: str, parent: int | bytes, milliseconds: float, **more: Any) -> None:
        number, start = self.open(member, name, parent), self.at
        self.at += int(milliseconds * MS)
        self.end(member, number, name, parent, start, **more)

    def report(self, member: Member, what: str, **fields: Any) -> None:
        self.intake.take(member, (7, self.at, what, fields))

    def totals(self, **more: Any) -> Totals:
        totals = Totals(
            run_id='grpo-41', folder='lens-runs/grpo-41', ended_ns=self.at, exit_code=0, complete=True, **more
        )
        fill(totals, self.intake, self.members, {})
        return totals


def grpo(steps: int = 3) -> Story:
    story = Story()
    driver = story.member()
    root = story.run.root_span_id
    job, begun = story.open(driver, 'rl.grpo.job', root, 'job'), story.at
    for step in range(steps):
        links = ((1, root, {'lens.link': 'run'}), (7, job, {'lens.link': 'enclosing'}))
        number, start = story.open(driver, 'rl.grpo.step', 0, 'step', links), story.at
        story.span(driver, 'rl.rollout', number, 1000 + 100 * step, items={'rl.bucket': 'productive'})
        story.span(driver, 'rl.reward', number, 50, status=2 if step == 1 else 0)
        story.span(driver, 'rl.wait', number, 200, items={'rl.bucket': 'idle'})
        story.span(driver, 'rl.policy_update', number, 600)
        story.at += 50 * MS
        point = (3, story.at, 'rl.reward.mean', 'gauge', '', 0.1 + 0.3 * step, None, 'r', b'', b'')
        story.intake.take(driver, point)
        story.intake.take(driver, (3, story.at, 'rl.tokens', 'counter', '{token}', 4096, None, 'r', b'', b''))
        story.end(driver, number, 'rl.grpo.step', 0, start, links, items={'lens.group': 'step'})
    story.end(driver, job, 'rl.grpo.job', root, begun)
    return story
