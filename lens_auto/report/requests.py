# SPDX-License-Identifier: Apache-2.0
"""What became of requests to an inference engine: how long they queued, read their prompt, wrote their answer.

From histograms that the engine's own figures make, so that a run without a span for each request has it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lens_auto.report.distributions import Sum

if TYPE_CHECKING:
    from lens_auto.report.store import Store

_PREFIX = 'rl.'
_PARTS = ('.request.queue_time', '.request.prefill_time', '.request.decode_time')
_FIRST, _EACH = 'gen_ai.server.time_to_first_token', 'gen_ai.server.time_per_output_token'
_NONE = Sum()


@dataclass
class Requests:
    """The finished requests of an engine, or of all of them; times in nanoseconds.

    Attributes:
        process: Whose output it is that they were; None of all together.
        count: How many there were.
        mean: From the queue to the last token, of one.
        queue: Until it was first scheduled, of all of them together.
        prefill: From there to the first token.
        decode: From the first token to the last.
        shares: Of these three, as parts of their sum.
        first: To the first token from the request's arrival; None where nothing tells.
        first_p95: 95 of 100 had theirs by then; as near as the buckets of a histogram tell.
        token: A token after the first.
        token_p95: That of the slowest requests but 5 of 100.
    """

    process: int | None
    count: int
    mean: float
    queue: float
    prefill: float
    decode: float
    shares: dict[str, float]
    first: float | None
    first_p95: float | None
    token: float | None
    token_p95: float | None


def requests(store: Store) -> list[Requests]:
    """All engines together, and each for itself if there are several; those with the most time first.

    Args:
        store: The run.
    """
    found: dict[int, dict[str, Sum]] = {}
    for one in store.distributions.values():
        what = _what(one.name)
        if what:
            sums = found.setdefault(one.process, {})
            sums[what] = sums.get(what, _NONE).plus(one.sum)
    engines = {process: sums for process, sums in found.items() if any(sums.get(part, _NONE).count for part in _PARTS)}
    if not engines:
        return []
    everything: dict[str, Sum] = {}
    for sums in engines.values():
        for what, one in sums.items():
            everything[what] = everything.get(what, _NONE).plus(one)
    rows = [_row(None, everything)]
    if len(engines) > 1:
        rows += sorted((_row(*one) for one in engines.items()), key=lambda row: -row.mean * row.count)
    return rows


def _what(name: str) -> str:
    if name in (_FIRST, _EACH):
        return name
    return next((part for part in _PARTS if name.startswith(_PREFIX) and name.endswith(part)), '')


def _row(process: int | None, sums: dict[str, Sum]) -> Requests:
    queue, prefill, decode = (sums.get(part, _NONE).total * 1e9 for part in _PARTS)
    count = max(sums.get(part, _NONE).count for part in _PARTS)
    spent = queue + prefill + decode
    shares = {'queue': queue, 'prefill': prefill, 'decode': decode}
    first, each = sums.get(_FIRST, _NONE), sums.get(_EACH, _NONE)
    return Requests(
        process,
        count,
        spent / count,
        queue,
        prefill,
        decode,
        {name: part / spent if spent else 0.0 for name, part in shares.items()},
        *_mean_and_tail(first),
        *_mean_and_tail(each),
    )


def _mean_and_tail(one: Sum) -> tuple[float | None, float | None]:
    tail = one.quantile(0.95)
    return one.mean * 1e9 if one.count else None, tail * 1e9 if tail is not None else None
