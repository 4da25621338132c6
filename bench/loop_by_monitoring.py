# SPDX-License-Identifier: Apache-2.0
"""A loop's iteration seen by `sys.monitoring` (Python 3.12 and newer) against one seen by an edit of the source.

Both count iterations and record nothing: what is compared is the way to learn of one. Prints, for each Python found,
what an iteration costs more than in the plain loop. The figures behind the one way that docs/benchmarks.md names.
"""

from __future__ import annotations

import builtins
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from lens_auto.rewrite.edit import rewrite  # noqa: E402
from lens_auto.rewrite.key import PLACE  # noqa: E402
from lens_auto.rewrite.pattern import parse  # noqa: E402
from lens_auto.rewrite.places import Wanted  # noqa: E402

SOURCE = b"""
def loop(count):
    for each in range(count):
        one = each
        two = one
"""
HEADER, FIRST = 3, 4
COUNT, ROUNDS = 2_000, 60
TOOL = 4


class Counted:
    """Enters and leaves, and counts."""

    begun = ended = 0

    def __enter__(self) -> None:
        Counted.begun += 1

    def __exit__(self, *error: object) -> None:
        Counted.ended += 1


def nanoseconds(loop: Any) -> float:
    """What an iteration takes of the processor, at best."""
    best = float('inf')
    for _ in range(ROUNDS):
        begun = time.thread_time_ns()
        loop(COUNT)
        best = min(best, (time.thread_time_ns() - begun) / COUNT)
    return best


def made(code: Any) -> Any:
    """The loop of a module's code."""
    module: dict[str, Any] = {}
    exec(code, module)
    return module['loop']


def by_monitoring(loop: Any) -> float:
    """An iteration begins with its first line, and ends at the header; other lines are switched off."""
    monitoring: Any = vars(sys)['monitoring']
    seen = [0, 0]

    def line(code: Any, number: int) -> Any:
        if number == FIRST:
            seen[0] += 1
        elif number == HEADER:
            seen[1] += 1
        else:
            return monitoring.DISABLE
        return None

    monitoring.use_tool_id(TOOL, 'bench')
    monitoring.register_callback(TOOL, monitoring.events.LINE, line)
    monitoring.set_local_events(TOOL, loop.__code__, monitoring.events.LINE)
    found = nanoseconds(loop)
    monitoring.free_tool_id(TOOL)
    assert seen[0] == COUNT * ROUNDS
    return found


def main() -> None:
    """See the module."""
    plain = made(compile(SOURCE, 'bench.py', 'exec'))
    bare = nanoseconds(plain)
    edited = made(rewrite(SOURCE, 'bench.py', [Wanted('k', 'loop', 'loop', parse('loop', 'for each in $_:'))]).code)
    counted = Counted()
    setattr(builtins, PLACE, lambda key: counted)
    places = nanoseconds(edited) - bare
    assert Counted.begun == Counted.ended == COUNT * ROUNDS
    lines = by_monitoring(plain) - bare if sys.version_info >= (3, 12) else None
    version = '{}.{}.{}'.format(*sys.version_info)
    shown = 'not there' if lines is None else f'{lines:.0f} ns, {lines / places:.2f} of the edit'
    print(f'{version}: the plain loop {bare:.0f} ns; the edit {places:.0f} ns more; sys.monitoring {shown}')


if __name__ == '__main__':
    if '--here' in sys.argv:
        main()
    else:
        from tests.helpers.program import SUPPORTED, interpreter

        for found in filter(None, map(interpreter, SUPPORTED)):
            subprocess.run([found, __file__, '--here'], check=True)
