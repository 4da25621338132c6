# SPDX-License-Identifier: Apache-2.0
"""A worker of Ray whose venv has a Python we do not support runs as without us, and the roll-call says so."""

from __future__ import annotations

import json

import pytest

from tests.helpers.program import python
from tests.helpers.run import Place

DRIVER = """\
import subprocess, sys
import trainer
subprocess.run([sys.argv[1], sys.argv[2] + '/ray/_private/workers/default_worker.py'], check=True)
trainer.fit(trainer.Config(), 1)
"""
# Stays long enough to be met, as a worker does.
WORKER = """\
import sys, time
time.sleep(1.5)
print('worked', sys.version_info >= (3, 10), flush=True)
"""


@pytest.mark.parametrize('version', ['3.8', '3.9'])
def test_the_roll_call_says_why(place: Place, version: str):
    old = python(version)
    place.write({'main.py': DRIVER, 'apart/ray/_private/workers/default_worker.py': WORKER})

    done = place.lens('python', 'main.py', old, str(place.cwd / 'apart'))

    assert done.code == 0, done.stderr
    assert 'worked False' in done.stdout
    assert f'0 of 1 worker instrumented; 1: venv has Python {version}' in done.stderr
    told = json.loads((place.run.path / 'run.json').read_text())['roll_call']['workers']
    assert told == {'seen': 1, 'instrumented': 0, 'not': [{'reason': f'venv has Python {version}', 'count': 1}]}
