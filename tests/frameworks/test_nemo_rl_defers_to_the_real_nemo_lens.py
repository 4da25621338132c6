# SPDX-License-Identifier: Apache-2.0
"""With nemo-lens itself, which needs Python 3.13: our rules stand down where it has what it needs to record."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

import pytest

from tests.helpers.program import python
from tests.helpers.ray_versions import cache
from tests.helpers.run import Place

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(900)]

NEEDS = ('nemo-lens==0.1.0', 'ray', 'numpy', 'pyyaml')
PROGRAM = ('run_trainers.py', '--local', '--config', 'configs/all.yaml', '--algorithms', 'grpo')


def venv(*more: str) -> str:
    """The interpreter of a venv with nemo-lens, made once."""
    folder = cache() / '-'.join(('nemo-lens-0.1.0', *more))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f'{folder}.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / '.made').exists():
            subprocess.run([python('3.13'), '-m', 'venv', '--clear', str(folder)], check=True)
            pip = [str(folder / 'bin' / 'python'), '-m', 'pip', '--disable-pip-version-check', '--no-input', '-q']
            done = subprocess.run([*pip, 'install', *NEEDS, *more], capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f'nemo-lens cannot be installed here: {done.stderr[-300:]}')
            (folder / '.made').touch()
    return str(folder / 'bin' / 'python')


@pytest.mark.parametrize(
    ('more', 'defers'),
    [
        ((), False),
        (('opentelemetry-sdk',), False),  # it would fail: no exporter over OTLP
        (('opentelemetry-sdk', 'opentelemetry-exporter-otlp-proto-grpc'), True),
    ],
    ids=['api', 'sdk', 'exporter'],
)
def test_its_spans_are_ours_only_where_it_could_not_send_any(
    nemo_rl: Place, more: tuple[str, ...], defers: bool
) -> None:
    nemo_rl.write({'nemo_rl/telemetry/__init__.py': 'import nemo.lens\n'})
    interpreter = venv(*more)
    assert Path(interpreter).exists()
    env = {'NEMO_RL_OTEL_ENABLED': '1'}
    names = nemo_rl.record('--span-groups', 'per_step,job', interpreter, *PROGRAM, env=env).names()
    assert {'rl.refit', 'rl.grpo.prepare_for_generation'} <= names
    assert ({'rl.grpo.job', 'rl.grpo.step', 'rl.grpo.policy_update', 'rl.vllm.generate'} <= names) is not defers
    assert ('rl.grpo.step' in names) is not defers
