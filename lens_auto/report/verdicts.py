# SPDX-License-Identifier: Apache-2.0
"""What holds a run up, by a table of rules: each with its evidence, its threshold, and what to look at next.

A rule compares one figure with one threshold. Several may hold; a rule that explains another (a slow rank makes the
generation long) hides it. `RULES` is in the order in which verdicts are told, the specific before the general.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lens_auto.collect.figures import percent, time

if TYPE_CHECKING:
    from collections.abc import Callable

    from lens_auto.report.facts import Facts


@dataclass
class Verdict:
    """One finding.

    Attributes:
        name: What it is called.
        why: The evidence, in a sentence.
        next: What to look at.
        value: The figure that was compared.
        threshold: With what.
        doubt: Why it may be wrong, ''.
    """

    name: str
    why: str
    next: str
    value: float
    threshold: float
    doubt: str = ''


@dataclass
class Rule:
    """A rule: the verdict it gives where `figure` is at least `threshold`.

    Attributes:
        when: A further condition.
        hides: Verdicts that this one explains.
        say: The evidence.
        look: What to look at next.
    """

    name: str
    threshold: float
    figure: Callable[[Facts], float]
    say: Callable[[Facts], str]
    look: str
    when: Callable[[Facts], bool] = lambda facts: True
    hides: tuple[str, ...] = ()


HEALTHY = 'healthy'
STUCK_AGE = 60_000_000_000  # nanoseconds that a span must at least be open for `stuck`
_ASYNC = 0.2  # of the time goes to generation beside the steps: an asynchronous run


def _share(kind: str) -> Callable[[Facts], float]:
    return lambda facts: facts.shares.get(kind, 0.0)


def _spent(kind: str, what: str) -> Callable[[Facts], str]:
    return lambda facts: f'{percent(facts.shares.get(kind, 0.0))} of a step of {time(facts.mean_step)} is {what}'


def _asynchronous(facts: Facts) -> bool:
    return facts.beside >= _ASYNC


def _slow(facts: Facts) -> str:
    one = facts.slow[0]
    return (
        f'{facts.labels[one.process]} takes {time(one.mean)} for {one.name}, {one.ratio:.2f} x the median of its '
        f'{one.peers - 1} peers; that is {percent(one.share)} of the steps'
    )


def _stuck_for(facts: Facts) -> float:
    """How many times as long as it should be the worst open span is open."""
    longer = 10 * facts.mean_step  # where none of its name has ended yet, nobody knows how long it takes
    return max((age / max(5 * longest or longer, STUCK_AGE) for _, age, longest in facts.stuck), default=0.0)


RULES: tuple[Rule, ...] = (
    Rule(
        'stuck',
        1.0,
        _stuck_for,
        lambda facts: facts.says_stuck,
        'lens-report top (while it hangs) or why (after it died): what every process has open',
        hides=('buffer-starved', 'trainer-starved', 'staleness-bound', 'one rank slow', 'driver-bound'),
    ),
    Rule(
        'one rank slow',
        0.05,
        lambda facts: facts.slow[0].share if facts.slow else 0.0,
        _slow,
        'lens-report workers; then that process: its node, its GPU clocks, its share of the data',
        hides=('tail-bound', 'generation-bound', 'buffer-starved', 'data-bound', 'reward-bound', 'logprob-bound'),
    ),
    Rule(
        'tail-bound',
        0.30,
        lambda facts: facts.tail,
        lambda facts: (
            f'nine tenths of the rollouts are done when {percent(facts.tail)} of the generation is still to come'
        ),
        'the longest rollouts: a lower token limit, over-sampling with early stop, or partial rollouts',
        when=lambda facts: facts.shares.get('generation', 0.0) >= 0.25 or _asynchronous(facts),
        hides=('generation-bound', 'buffer-starved'),
    ),
    Rule(
        'checkpoint stall',
        0.10,
        _share('checkpoint'),
        lambda facts: (
            f'{percent(facts.shares.get("checkpoint", 0.0))} of the steps is saving; of step '
            f'{facts.worst_checkpoint[0]} it was {percent(facts.worst_checkpoint[1])}'
        ),
        'save less often, or asynchronously, or to a faster disk',
    ),
    Rule(
        'staleness-bound',
        0.15,
        lambda facts: max(facts.wasted, facts.pause if facts.shares.get('wait', 0.0) >= 0.10 else 0.0),
        lambda facts: (
            f'{percent(facts.wasted)} of the steps went to samples that were thrown away'
            if facts.wasted >= 0.15
            else f'{facts.pausing[0]} pauses {percent(facts.pause)} of the time for newer weights while the trainer '
            f'waits {percent(facts.shares.get("wait", 0.0))} of its own for samples'
        ),
        'a higher limit on the lag of weights, or more frequent weight updates',
        hides=('buffer-starved', 'trainer-starved'),
    ),
    Rule(
        'refit-bound',
        0.15,
        _share('refit'),
        _spent('refit', 'bringing weights to the generators'),
        'lens-report step N: which part of the refit; colocated or overlapped transfer',
    ),
    Rule(
        'buffer-starved',
        0.20,
        _share('wait'),
        lambda facts: (
            f'the trainer waits {percent(facts.shares.get("wait", 0.0))} of a step for samples '
            f'({max(facts.waits, key=lambda name: facts.waits[name], default="")})'
        ),
        'more generators, or a larger buffer; lens-report workers shows whether all of them are busy',
        when=_asynchronous,
    ),
    Rule(
        'trainer-starved',
        0.50,
        lambda facts: facts.pause,
        lambda facts: (
            f'{facts.pausing[0]} pauses {percent(facts.pause)} of the time for the trainer ({facts.pausing[1]})'
        ),
        'move workers from generation to training: samples are ready before they are wanted',
        when=lambda facts: facts.shares.get('wait', 0.0) < 0.10,
    ),
    Rule(
        'reward-bound',
        0.25,
        _share('reward'),
        _spent('reward', 'computing rewards, or the environment'),
        'more reward workers, a cheaper check first, or scoring while others still generate',
    ),
    Rule(
        'logprob-bound',
        0.35,
        _share('logprob'),
        _spent('logprob', 'log-probabilities of the policy and its reference'),
        'larger batches for log-probabilities; without a KL term no reference policy is needed',
    ),
    Rule(
        'data-bound',
        0.15,
        _share('data'),
        _spent('data', 'preparing data'),
        'more loader workers, or prefetching',
    ),
    Rule(
        'driver-bound',
        0.20,
        lambda facts: facts.shares.get('other', 0.0),
        lambda facts: f'{percent(facts.shares.get("other", 0.0))} of a step is in no recorded phase',
        'the code between the phases: a profiler on the driver, or a rule for what it does there',
    ),
    Rule(
        'generation-bound',
        0.65,
        _share('generation'),
        _spent('generation', 'generation, and it is spread over the rollouts'),
        'more or faster generators, or training meanwhile (an asynchronous run)',
    ),
)


def verdicts(facts: Facts) -> list[Verdict]:
    """What holds the run up, the most specific first; at least one: that it is healthy.

    Args:
        facts: Of the run.
    """
    found: list[Verdict] = []
    hidden: set[str] = set()
    for rule in RULES:
        value = rule.figure(facts)
        if value < rule.threshold or not rule.when(facts):
            continue
        found.append(Verdict(rule.name, rule.say(facts), rule.look, value, rule.threshold, _doubt(facts, value, rule)))
        hidden.update(rule.hides)
    found = [one for one in found if one.name not in hidden]
    return found or [_healthy(facts)]


def _doubt(facts: Facts, value: float, rule: Rule) -> str:
    if rule.name == 'stuck':
        return ''
    if facts.steps < 3:
        return f'only {facts.steps} step{"" if facts.steps == 1 else "s"} to judge by'
    if value < 1.15 * rule.threshold:
        return f'close to the threshold of {percent(rule.threshold)}'
    return ''


def _healthy(facts: Facts) -> Verdict:
    if not facts.steps:
        return Verdict(
            'no steps',
            'no span of group `step` has ended: nothing says how long a step took',
            'the groups that were recorded: lens-instrument --info; or a rule for the training step',
            0.0,
            0.0,
        )
    most = sorted(facts.shares.items(), key=lambda item: -item[1])[:3]
    split = ', '.join(f'{name} {percent(share)}' for name, share in most)
    doubt = f'only {facts.steps} step{"" if facts.steps == 1 else "s"} to judge by' if facts.steps < 3 else ''
    return Verdict(
        HEALTHY,
        f'nothing stands out: {split} of a step of {time(facts.mean_step)}',
        'lens-report steps',
        0.0,
        0.0,
        doubt,
    )
