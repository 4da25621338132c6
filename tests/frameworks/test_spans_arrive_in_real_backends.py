# SPDX-License-Identifier: Apache-2.0
"""Phoenix and MLflow, real ones: what they hand back is the run, span for span, and the lack of metrics is said once.

docs/observability.md has the recipes for them; the other backends on that page are no Python packages.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from tests.helpers.ray_program import RayPlace
from tests.helpers.real_backends import Backend, MlFlow, Phoenix
from tests.helpers.run import REPOSITORY, Place, Run, Span, tree

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]

WAYS = [('phoenix', 'grpc'), ('phoenix', 'http/protobuf'), ('mlflow', 'http/protobuf')]
way = pytest.mark.parametrize(('backend', 'protocol'), WAYS, indirect=['backend'], ids=map('-'.join, WAYS))
GROUPS = ('--span-groups', 'per_step,job')
TRAIN = ('python', 'examples/run_grpo.py', '--steps', '5')
MICROSECOND = 1_000
THEIRS = 'mlflow.'  # attributes that they add


@pytest.fixture(scope='module')
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    """A Phoenix for all tests, each with a name of its own in it."""
    with Phoenix(tmp_path_factory.mktemp('phoenix')) as backend:
        yield backend


@pytest.fixture(scope='module')
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    """An MLflow for all tests."""
    with MlFlow(tmp_path_factory.mktemp('mlflow')) as backend:
        yield backend


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Backend:
    """The one of these that is asked for; the other is not started."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope='module')
def example(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A working directory with the example in it."""
    pytest.importorskip('torch')
    place = Place(tmp_path_factory.mktemp('example'))
    shutil.copytree(REPOSITORY / 'examples', place.cwd / 'examples', ignore=shutil.ignore_patterns('__pycache__'))
    return place


@pytest.fixture(scope='module')
def kept(example: Place) -> Run:
    """The example's run, in a folder."""
    return example.record(*GROUPS, *TRAIN)


def name_of(request: pytest.FixtureRequest) -> str:
    """A name for a run that no other test has."""
    return ''.join(sign if sign.isalnum() else '-' for sign in request.node.name)


def counted(run: Run) -> Counter[str]:
    """How many spans of each name run.json has; the run's own span is not in its table."""
    counts = Counter({'lens.run': 1})
    for row in run.facts['spans']:
        counts[row['path'][-1]] += row['count']
    return counts


def in_traces(spans: Sequence[Span]) -> list[str]:
    """Every trace as a tree, with the step that it is."""
    traces = {span.trace for span in spans}
    return sorted('\n'.join(tree([one for one in spans if one.trace == trace], ('rl.iteration',))) for trace in traces)


@way
def test_a_run_is_there_in_the_traces_it_would_have_had_in_a_folder(
    backend: Backend, protocol: str, example: Place, kept: Run, request: pytest.FixtureRequest
) -> None:
    env = backend.environment(protocol, name_of(request))
    done = example.lens(*GROUPS, *TRAIN, env=env)
    run = example.runs[-1]
    assert done.code == 0 and 'done: 5 steps' in done.stdout, done.stderr

    # They have no place for metrics: one warning, and nothing else is the worse for it.
    assert run.facts['unsent']['points'] == len(run.points) > 0
    [note] = [note for note in run.facts['notes'] if note.startswith('sending metrics to ')]
    assert f'{env["OTEL_EXPORTER_OTLP_ENDPOINT"]} ({protocol}) failed: ' in note
    assert note.endswith('--set metrics_enabled=false leaves them out')

    if 'spans' in run.facts['unsent']:  # the launcher waits two seconds at most, and these are no fast ones
        example.lens('--replay', str(run.path), env=env)
    arrived = backend.spans(name_of(request))
    assert Counter(span.name for span in arrived) == counted(run)
    assert len({span.id for span in arrived}) == len(arrived) == 45
    assert in_traces(arrived) == in_traces(kept.spans)
    assert len({span.trace for span in arrived}) == 6  # the run with its job, and five steps


@way
def test_a_replayed_run_is_there_span_for_span(
    backend: Backend, protocol: str, example: Place, request: pytest.FixtureRequest
) -> None:
    env = backend.environment(protocol, name_of(request))
    # Recorded with the backend's name for it: a replay sends the resource that the run had.
    run = example.record('--exporter', 'file', '--set', 'metrics_enabled=false', *GROUPS, *TRAIN, env=env)
    assert len(run.spans) == 45
    done = example.lens('--replay', str(run.path), env=env)
    assert done.code == 0 and 'sending: all of it is at ' in done.stderr, done.stderr
    arrived = {span.id: span for span in backend.spans(name_of(request))}

    assert arrived.keys() == {span.id for span in run.spans}
    for span in run.spans:
        there = arrived[span.id]
        assert (there.name, there.trace, there.parent) == (span.name, span.trace, span.parent)
        # Phoenix keeps microseconds.
        assert abs(there.start - span.start) <= MICROSECOND and abs(there.end - span.end) <= MICROSECOND
        assert there.error == span.error
        own = {name: value for name, value in there.attributes.items() if not name.startswith(THEIRS)}
        assert own == span.attributes


def test_ray_workers_are_below_the_phase_that_waits_for_them(
    phoenix: Backend, nemo_rl_on_ray: RayPlace, request: pytest.FixtureRequest
) -> None:
    env = {**phoenix.environment('grpc', name_of(request)), 'LENS_EXPORT_STRATEGY': 'all_ranks'}
    program = ('run_grpo.py', '--config', 'configs/grpo.yaml')
    traced = nemo_rl_on_ray.traced(*program, rules=(), groups='per_step,job', env=env)
    assert traced.done.code == 0, traced.done.stderr
    if 'spans' in traced.run.facts['unsent']:
        nemo_rl_on_ray.lens('--replay', str(traced.run.path), env=env)
    arrived = {span.id: span for span in phoenix.spans(name_of(request))}

    assert Counter(span.name for span in arrived.values()) == counted(traced.run)
    steps = {span.trace for span in arrived.values() if span.name == 'rl.grpo.step'}
    trained = [span for span in arrived.values() if span.name == 'rl.policy.train']
    assert len(steps) == 2 and len(trained) == 2 * 2  # workers
    assert {span.trace for span in trained} == steps
    assert {arrived[span.parent].name for span in trained} == {'rl.grpo.policy_update'}
    above = [span.parent for span in arrived.values() if span.parent]
    assert set(above) <= arrived.keys()
