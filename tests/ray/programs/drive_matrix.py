# SPDX-License-Identifier: Apache-2.0
"""Goes through the cells of `ray_matrix`, printing what each gave as a line of JSON.

`drive_matrix.py FOLDER [CELL...]`; FOLDER is empty and the program's own.
"""

import json
import re
import sys
import time
import traceback

import ray
from ray_matrix import actor_phases, script_phases, table, task_phases
from ray_matrix.given import GIVEN, PATIENCE, seen


@ray.remote
def script_task(*args, **kwargs):
    return seen(args, kwargs)


@ray.remote
class ScriptActor:
    def __init__(self, *args, **kwargs):
        self.given = seen(args, kwargs)

    def work(self, *args, **kwargs):
        return [self.given, seen(args, kwargs)]


class ScriptLate:
    async def work(self, *args, **kwargs):
        return seen(args, kwargs)


def hidden(value):
    """How many bodies saw something else than they were given."""
    if isinstance(value, (list, tuple)):
        return sum(map(hidden, value))
    return int(isinstance(value, str) and value[:1].isdigit() and value != GIVEN)


def error_text(error):
    """An error as a user sees it, with the frames of driver and worker, but for what changes from run to run."""
    text = re.sub(r'\x1b\[[0-9;]*m', '', ''.join(traceback.format_exception(error)))
    text = re.sub(r'pid=\d+|ip=[\d.]+|actor_id=\w+|0x[0-9a-f]+|repr=<[^>]*>', '', text)
    # Of an async method Ray waits for a future, which may have come before it waits.
    text = re.sub(r'line \d+, in (?=result|__get_result)', '', text)
    lines = text.splitlines()
    if sys.version_info < (3, 11):  # see docs/limits.md
        lines = [line for line in lines if not line.startswith('  ')]
    return [type(error).__name__, repr(getattr(error, 'cause', None)), *lines]


def run(module, cell, folder):
    try:
        value, error = getattr(module, f'phase_{cell.name}')(folder), None
    except Exception as caught:
        value, error = None, error_text(caught)
    print(json.dumps({'cell': cell.name, 'value': value, 'error': error, 'hidden': hidden(value)}), flush=True)


def main(folder, chosen):
    began = time.monotonic()
    ray.init(address='local', num_cpus=2, include_dashboard=False)
    print(f'ray {ray.__version__} after {time.monotonic() - began:.1f} s', file=sys.stderr)
    parts = (task_phases, table.TASKS), (actor_phases, table.ACTORS), (script_phases, table.SCRIPT)
    for module, cells in parts:
        for cell in cells:
            if not chosen or cell.name in chosen:
                at = time.monotonic()
                run(module, cell, folder)
                print(f'{cell.name} {time.monotonic() - at:.1f} s', file=sys.stderr)
    print(json.dumps({'left': ray.get(task_phases.left_behind, timeout=PATIENCE)}))
    ray.shutdown()


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2:])
