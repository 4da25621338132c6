# SPDX-License-Identifier: Apache-2.0
"""Whether a process records: its rank against `export_strategy`.

Asked once per process; sites of a rank that does not stay unpatched.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from lens_auto.settings.fields import Value

_MASK = (1 << 64) - 1


def exports(values: Mapping[str, Value], environ: Mapping[str, str]) -> bool:
    """Whether this process records, judged by its own RANK, WORLD_SIZE and LOCAL_RANK.

    The driver and processes that are no rank (singleton actors, servers) always do, and no sampler touches them.
    """
    world = _number(environ, 'WORLD_SIZE')
    if world is None or world <= 1:
        return True
    rank = _number(environ, 'RANK') or 0
    strategy = values['export_strategy']
    if strategy == 'single_rank':
        chosen = values['export_rank']
        if rank != (world - 1 if chosen == -1 else chosen):
            return False
    elif strategy == 'first_rank_per_node' and (_number(environ, 'LOCAL_RANK') or 0) != 0:
        return False
    if strategy == 'sampled' or values['sampler_enabled']:
        return _draw(f'{environ.get("LENS_RUN_ID", "")}:{rank}') < float(values['export_sample_rate'])
    return True


def _number(environ: Mapping[str, str], name: str) -> int | None:
    try:
        return int(environ.get(name, ''))
    except ValueError:
        return None


def _draw(key: str) -> float:
    # FNV-1a and murmur3's finaliser: the same in every interpreter, and it leaves the program's random streams alone.
    state = 0xCBF29CE484222325
    for byte in key.encode():
        state = (state ^ byte) * 0x100000001B3 & _MASK
    state = (state ^ state >> 33) * 0xFF51AFD7ED558CCD & _MASK
    state = (state ^ state >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return (state ^ state >> 33) / (1 << 64)
