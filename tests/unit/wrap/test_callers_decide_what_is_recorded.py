# SPDX-License-Identifier: Apache-2.0
"""`within` and `outside`: a call counts, or does not, where certain functions further up have made it."""

from pathlib import Path
from typing import Any

from tests.helpers.program import Program, function

MODULE = """
import asyncio
def put(): pass
def client(): put()
async def rollout():
    await asyncio.sleep(0)
    await commit()
async def commit(): client()
def step(): client()
class Store:
    def drain(self): client()
"""
MAIN = 'import asyncio, m\nm.step()\nasyncio.run(m.rollout())\nm.Store().drain()\n'


def put(key: str, **keys: Any) -> dict[str, Any]:
    return {**function(key[0] * 12, 'm:put', name=key), **keys}


def test_a_call_counts_where_one_of_the_named_functions_makes_it(tmp_path: Path) -> None:
    rollouts = (('m', 'rollout'),)
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': MAIN})
    traced = program.traced([put('inside', within=rollouts), function('s', 'm:step', name='step')])
    assert traced.visible() == program.plain().visible()
    assert traced.journal.tree() == 'step\ninside'
    # Of three calls one is recorded; the others are told as left out by the rule itself.
    calls, spans, filtered = (traced.journal.stats['i' * 12][index] for index in (0, 1, 6))
    assert (calls, spans, filtered) == (3, 1, 2)


def test_or_where_none_of_them_does(tmp_path: Path) -> None:
    outside = (('m', 'rollout'), ('m', 'Store.drain'))
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': MAIN})
    rules = [put('outside', outside=outside), function('s', 'm:step', name='step')]
    assert program.traced(rules).journal.tree() == 'step\n  outside'


def test_only_so_far_up_is_looked(tmp_path: Path) -> None:
    source = 'import m\ndef down(n): return down(n - 1) if n else m.put()\ndef top(n): down(n)\n'
    main = 'import deep\ndeep.top(2)\ndeep.top(60)\n'
    program = Program(tmp_path, {'m.py': MODULE, 'deep.py': source, 'main.py': main})
    assert program.traced([put('near', within=(('deep', 'top'),))]).journal.tree() == 'near'
