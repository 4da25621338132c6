# SPDX-License-Identifier: Apache-2.0
"""Without `vllm_native_tracing` a real vLLM traces nothing by itself, although its OpenTelemetry is there and has no
provider; with it, its headers are in the environment of what it starts.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import run
from tests.helpers.run import Place
from tests.helpers.vllm_venv import NoVllm, model, python_with_vllm, wanted

pytestmark = [pytest.mark.frameworks, pytest.mark.slow, pytest.mark.timeout(1500)]
PROGRAMS = Path(__file__).parent / 'vllm_programs'
ENGINE = {
    'HF_HUB_OFFLINE': '1',
    'OMP_NUM_THREADS': '1',
    'VLLM_CPU_KVCACHE_SPACE': '1',
    'VLLM_LOGGING_LEVEL': 'WARNING',
    'VLLM_NO_USAGE_STATS': '1',
    'VLLM_WORKER_MULTIPROC_METHOD': 'spawn',
}
OURS = {
    *('rl.vllm.load_model', 'rl.vllm.engine_core.start', 'rl.vllm.worker.start', 'rl.vllm.worker.load_model'),
    *('rl.vllm.engine_core.init_kv_cache', 'rl.vllm.worker.warm_up', 'rl.vllm.generate', 'rl.vllm.request'),
}


@pytest.fixture(params=wanted())
def python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(run, 'PATIENCE', 1200.0)
    try:
        yield python_with_vllm(request.param)
    except NoVllm as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize('native', ['0', '1'])
def test_trace_headers_are_in_the_environment_for_a_tracer_that_is_on(python: str, native: str, tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.env |= {**ENGINE, 'NOTED': str(tmp_path / 'noted'), 'PATH': f'{Path(python).parent}:{place.env["PATH"]}'}
    shutil.copytree(PROGRAMS, place.cwd, dirs_exist_ok=True, ignore=shutil.ignore_patterns('__pycache__'))
    groups = '--span-groups=per_step,job,model_init,per_prompt'
    command = (groups, '--set', f'vllm_native_tracing={native}', python, 'headers.py', str(model()))
    found = place.record(*command)
    assert OURS | {'my start'} <= found.names()
    assert (tmp_path / 'noted').exists() is (native == '1')
    if native == '0':
        assert found.names() == OURS | {'my start'}
    else:
        assert 'Load weights' in found.names()
    # However it is: our start is below what the program was in.
    [load] = found.named('rl.vllm.load_model')
    assert load.parent == found.only('my start').id
