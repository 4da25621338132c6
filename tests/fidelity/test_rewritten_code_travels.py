# SPDX-License-Identifier: Apache-2.0
"""Rewritten functions sent by value to a process that knows nothing of us, and to one that records."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import pytest

from tests.helpers.rewriting import edited

SOURCE = b"""
import contextlib
scale = 3

class Actor:
    __secret = 2
    def step(self, n):
        total = 0
        for i in range(n):
            with contextlib.nullcontext(i) as j:
                total += max(j, self.__secret)
        return total, sorted(locals())

def task(n):
    def numbers():
        for i in range(n):
            yield i * scale
    return list(numbers()), Actor().step(n), sorted(k for k in globals() if not k.startswith('__'))
"""
RUN = 'import pickle, sys; print(pickle.load(sys.stdin.buffer)(3)); print([m for m in sys.modules if "lens" in m])'


@pytest.fixture
def task(tmp_path: Path) -> Any:
    path = tmp_path / 'travelling.py'
    path.write_bytes(SOURCE)
    module = ModuleType('travelling')
    exec(edited(SOURCE, str(path)).code, module.__dict__)
    return module.__dict__['task']


def run(pickled: bytes, program: str = RUN) -> str:
    done = subprocess.run([sys.executable, '-I', '-c', program], input=pickled, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_a_worker_without_us_runs_it_as_if_it_had_not_been_touched(task: Any) -> None:
    namespace: dict[str, Any] = {'__name__': 'travelling'}
    exec(SOURCE, namespace)
    assert run(cloudpickle.dumps(task)) == run(cloudpickle.dumps(namespace['task']))


def test_what_is_sent_holds_nothing_of_ours_but_text(task: Any) -> None:
    sent = cloudpickle.dumps(task)
    assert b'lens_auto' not in sent
    assert b'_lens_place' in sent


def test_a_worker_that_records_has_its_spans_without_the_module(task: Any) -> None:
    root = str(Path(__file__).parents[2])
    program = f"""
import pickle, sys
sys.path.insert(0, {root!r})
from tests.helpers.place_recording import Recording
recording = Recording()
print(pickle.load(sys.stdin.buffer)(3)[0])
begun, ended = recording.spans()
print(begun == ended, begun, recording.faults, 'ast' in sys.modules and 'lens_auto.rewrite.edit' in sys.modules)
"""
    printed = run(cloudpickle.dumps(task), program).splitlines()
    # Three iterations and calls each in two loops, blocks, and the calls around.
    assert printed[0] == '[0, 3, 6]'
    same, begun, faults, loaded = printed[1].split()
    assert (same, faults, loaded) == ('True', '[]', 'False')
    assert int(begun) > 12
