# SPDX-License-Identifier: Apache-2.0
"""Hooks that Ray runs in a worker ahead of its first task: Ray's core ends a process that asks for its task then."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tests.helpers.ray_program import RayPlace, rules_text

PROGRAM = """
import os
import time

import ray
import work

@ray.remote
def task():
    return os.getpid(), os.path.exists(f'early-{os.getpid()}')

def train():
    return ray.get([task.remote() for _ in range(4)])

ray.init(address='local', num_cpus=2, include_dashboard=False, _tracing_startup_hook='hook:set_up')
deadline = time.monotonic() + 60
while len([name for name in os.listdir('.') if name.startswith('early-')]) < 3:
    assert time.monotonic() < deadline, 'two workers wait for a job: their hooks have not come to an end'
    time.sleep(0.1)
assert all(early for _, early in work.train(train))
ray.shutdown()
"""
HOOK = """
import os
import threading

import work

def set_up():
    work.early()
    thread = threading.Thread(target=work.aside)
    thread.start()
    thread.join()
    open(f'early-{os.getpid()}', 'w').close()
"""
WORK = """
def train(run): return run()
def early(): pass
def aside(): pass
"""


def test_spans_and_threads_of_a_set_up_hook(new_place: Callable[..., RayPlace]) -> None:
    names = {name: f'work:{name}' for name in ('train', 'early', 'aside')}
    place = new_place().write({'main.py': PROGRAM, 'hook.py': HOOK, 'work.py': WORK, 'rules.yaml': rules_text(names)})
    # Ray's own tracing, whose hook this is, needs the SDK.
    if subprocess.run([place.python, '-c', 'import opentelemetry.sdk'], capture_output=True).returncode:
        pytest.skip('no opentelemetry in the venv with this ray')
    traced = place.traced('main.py', env={'PYTHONPATH': str(place.cwd)})
    assert traced.done.code == 0, traced.done.stderr
    assert 'worker died' not in traced.done.stdout + traced.done.stderr
    spans = [span for span in traced.spans if span.name in names]
    assert {span.name for span in spans} == set(names)
    assert len({span.parent for span in spans}) == 1  # the run's own: no task of Ray was at work
    early = [span for span in spans if span.name == 'early']
    assert len(early) >= 3
    assert len({span.resource['process.pid'] for span in early}) == len(early)
