# SPDX-License-Identifier: Apache-2.0
"""What else an engine does that a CPU can show: embeddings, scores, beams, adapters; the same with and without us."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.frameworks.test_vllm_on_a_real_engine import ONE_PROCESS, PATIENCE, lines, names_above, placed
from tests.helpers import run
from tests.helpers.run import Place, Run
from tests.helpers.vllm_venv import NoVllm, model, python_with_vllm, wanted

pytestmark = [pytest.mark.frameworks, pytest.mark.slow, pytest.mark.timeout(1500)]
GROUPS = '--span-groups=per_step,model_init,per_prompt'


@pytest.fixture(scope='module', params=wanted())
def python(request: pytest.FixtureRequest) -> str:
    try:
        return python_with_vllm(request.param)
    except NoVllm as reason:
        pytest.skip(str(reason))


@pytest.fixture(autouse=True)
def _patience() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, 'PATIENCE', PATIENCE)
        yield


def recorded(place: Place, python: str, program: str, env: dict[str, str]) -> Run:
    """The run of a program that prints the same with us and without."""
    command = (python, program, str(model()))
    placed(place, python).env.update(env)
    plain = place.plain(*command)
    assert plain.code == 0, plain.stderr
    traced = place.lens('--no-summary', GROUPS, *command)
    assert (traced.code, lines(traced.stdout)) == (0, lines(plain.stdout)), traced.stderr
    assert lines(plain.stdout)
    return place.run


def test_embeddings_and_scores(tmp_path_factory: pytest.TempPathFactory, python: str) -> None:
    found = recorded(Place(tmp_path_factory.mktemp('pooled')), python, 'pooled.py', ONE_PROCESS)
    asked = {name: found.only(name).attributes['rl.vllm.requests'] for name in ('rl.vllm.encode', 'rl.vllm.score')}
    assert asked == {'rl.vllm.encode': 2, 'rl.vllm.score': 3}
    requests = found.named('rl.vllm.request')
    above = Counter(names_above(found, span)[0] for span in requests)
    assert above == {'rl.vllm.encode': 2, 'rl.vllm.score': 4}  # one text is compared with three
    assert {span.attributes['gen_ai.operation.name'] for span in requests} == {'embeddings'}
    assert 'rl.vllm.generation_tokens' not in found.metric_names()


def test_adapters_and_beam_search(tmp_path_factory: pytest.TempPathFactory, python: str) -> None:
    found = recorded(Place(tmp_path_factory.mktemp('adapted')), python, 'adapted.py', {})
    assert found.only('rl.vllm.add_lora').attributes['rl.vllm.lora'] == 'another'
    loads = {str(span.attributes['rl.vllm.lora']): span for span in found.named('rl.vllm.worker.load_lora')}
    assert {span.resource['lens.role'] for span in loads.values()} == {'vllm worker'}
    assert names_above(found, loads['another'])[:2] == ['rl.vllm.engine_core.call', 'rl.vllm.add_lora']
    assert sorted(loads) == ['another', 'mine']  # the first came with its request
    adapted = [span for span in found.named('rl.vllm.request') if span.attributes['gen_ai.response.model'] == 'mine']
    assert [names_above(found, span)[0] for span in adapted] == ['rl.vllm.generate']
    beams = found.only('rl.vllm.beam_search')
    assert beams.attributes['rl.vllm.requests'] == 1
    assert sum(span.parent == beams.id for span in found.named('rl.vllm.request')) > 4  # one a beam and token
