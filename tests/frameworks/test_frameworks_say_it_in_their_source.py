# SPDX-License-Identifier: Apache-2.0
"""Frameworks, each as a small program: its rules, the same written into its source, and both give one picture."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from lens_auto.codemod.cli import main
from tests.frameworks.conftest import copied
from tests.frameworks.test_vllm_requests_and_figures import GENERATE, LIKE
from tests.helpers.ray_program import RayPlace
from tests.helpers.run import LENS, REPOSITORY, SCRIPTS, Place, Run
from tests.helpers.small_trainer import FILES
from tests.process.codemod.test_the_source_gives_the_picture_of_the_rules import OWN

HOME_MADE = REPOSITORY / 'tests' / 'process' / 'discover' / 'home_made'
TRAINERS = 'grpo,grpo_sync,ppo,sft,dpo,rm,distillation'
# `lens-instrument` without the rules that come with it, but for those on Ray's calls: the rest the source has said.
BARE = """
from lens_auto.launch.main import main
from lens_auto.rules import finding
kept = [path for path in finding.built_in() if path.endswith('ray.yaml')]
finding.built_in = lambda: kept
main()
"""


class Framework(NamedTuple):
    """A program, and what its rules make of it that its source cannot say.

    Attributes:
        put: Puts it into a working directory.
        command: What runs it.
        spans: How many spans its rules make at least, the run's own among them.
        series: How many series of metric points.
        beyond: Names of the spans that need the rules themselves, in either style.
        beyond_otel: Names of those that style `otel` has no words for.
        placed: A span whose bucket depends on where it is called, which style `otel` has no words for.
    """

    put: Callable[[Place], None]
    command: tuple[str, ...]
    spans: int
    series: int
    beyond: frozenset[str] = frozenset()
    beyond_otel: frozenset[str] = frozenset()
    placed: str = ''


def _nemo_rl(place: Place) -> None:
    pytest.importorskip('ray')
    copied(place)


def _vllm(place: Place) -> None:
    shutil.copytree(LIKE, place.cwd, dirs_exist_ok=True, ignore=shutil.ignore_patterns('__pycache__'))
    place.write({'program.py': GENERATE})


def _home_made(place: Place) -> None:
    pytest.importorskip('torch')
    for path in HOME_MADE.rglob('*.txt'):
        place.write({str(path.relative_to(HOME_MADE).with_suffix('')): path.read_text()})
    done = place.plain(str(SCRIPTS / 'lens-rules'), 'discover', '.', '-o', 'lens.yaml')
    assert done.code == 0, done.stderr


def _small(place: Place) -> None:
    place.write(FILES)


FRAMEWORKS = {
    'nemo_rl_like': Framework(
        *(_nemo_rl, ('run_trainers.py', '--local', '--config', 'configs/all.yaml', '--algorithms', TRAINERS)),
        *(103, 16),
        beyond_otel=frozenset(
            {'rl.startup', 'rl.dpo.reference_logprobs', 'rl.rm.policy_update', 'rl.rm.validation_forward'}
        ),
        placed='rl.vllm.generate',
    ),
    'vllm_like': Framework(
        *(_vllm, ('program.py',), 8, 21),
        beyond=frozenset({'rl.vllm.load_model', 'rl.vllm.request'}),
        beyond_otel=frozenset({'rl.vllm.generate'}),
    ),
    'home_made': Framework(
        *(_home_made, ('train.py', '--steps', '2', '--warmup-sft', '5', '--eval-every', '2', '--save-every', '2')),
        *(31, 16),
    ),
    'small_trainer': Framework(_small, ('train.py',), 14, 2),
}


def record(place: Place, framework: Framework, bare: bool = False) -> Run:
    before = {each.path for each in place.runs}
    launcher = (sys.executable, '-c', BARE) if bare else (LENS,)
    command = (*launcher, '--no-summary', '--span-groups', 'all', sys.executable, *framework.command)
    done = place.plain(*command, env={'OTEL_SERVICE_NAME': 'trained'})
    assert done.code == 0, done.stderr
    [new] = [each for each in place.runs if each.path not in before]
    assert not new.facts['faults']
    return new


def picture(run: Run, without: frozenset[str] = frozenset(), placed: str = '') -> list[Any]:
    """The spans in order, with everything that is not a time or an id.

    Args:
        run: The run.
        without: Names of spans to leave out; what is below one moves up.
        placed: The name of spans whose bucket is left out.
    """
    spans = run.spans
    above = {span.id: span.parent or next(iter(each for _, each in span.links), '') for span in spans}
    left_out = {span.id for span in spans if span.name in without}
    kept = [span for span in spans if span.id not in left_out]
    number = {span.id: index for index, span in enumerate(kept)}

    def at(span: str) -> int:
        while span in left_out:
            span = above[span]
        return number.get(span, -1)

    drop = (*OWN, 'otel.scope')
    return [
        (
            span.name,
            at(span.parent),
            sorted({at(target) for _, target in span.links}),
            span.status,
            {
                name: value
                for name, value in span.attributes.items()
                if not name.startswith(drop) and 'time' not in name and (name, span.name) != ('rl.bucket', placed)
            },
        )
        for span in kept
    ]


def resources(run: Run) -> list[Any]:
    own = (*OWN, 'telemetry.')
    return [{name: value for name, value in span.resource.items() if not name.startswith(own)} for span in run.spans]


def series(run: Run) -> set[Any]:
    """The metric points by name and attributes; what they are worth may be a duration."""
    return {(point.name, *sorted(point.attributes.items())) for point in run.points}


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp('framework'))


@pytest.mark.slow
@pytest.mark.parametrize('name', FRAMEWORKS)
def test_said_in_the_source_it_is_the_picture_of_the_rules(
    place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    framework = FRAMEWORKS[name]
    ruled, alone = compared(place, framework, 'lens', monkeypatch)
    assert picture(alone) == picture(ruled, framework.beyond)
    if not framework.beyond:
        assert resources(alone) == resources(ruled)
        assert series(alone) == series(ruled)


@pytest.mark.slow
@pytest.mark.parametrize('name', FRAMEWORKS)
def test_said_in_the_words_of_opentelemetry_it_is_the_picture_as_far_as_these_go(
    place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond them are metrics, attributes of the process, and the spans that are named above."""
    framework = FRAMEWORKS[name]
    ruled, alone = compared(place, framework, 'otel', monkeypatch)
    beyond = framework.beyond | framework.beyond_otel
    assert picture(alone, placed=framework.placed) == picture(ruled, beyond, framework.placed)


def compared(place: Place, framework: Framework, style: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Run, Run]:
    """The run by the rules, which is that by rules and source together; and that by the source alone."""
    framework.put(place)
    ruled = record(place, framework)
    assert len(ruled.spans) >= framework.spans and len(series(ruled)) >= framework.series
    monkeypatch.chdir(place.cwd)
    assert main(['apply', '--style', style, '--write', '.']) == 0

    both = record(place, framework)
    assert picture(both) == picture(ruled)
    assert resources(both) == resources(ruled)
    assert series(both) == series(ruled)
    assert missing(both) == missing(ruled)

    (place.cwd / 'lens.yaml').unlink(missing_ok=True)
    return ruled, record(place, framework, bare=True)


def missing(run: Run) -> list[Any]:
    """What each rule did not find; not what its place in the source says already."""
    return [[told for told in rule['missing'] if not told.endswith('says it already')] for rule in run.facts['rules']]


ON_RAY = 'sft,dpo,rm,distillation,grpo_sync,sc,actors'
POLLS = f'async_ppo,{ON_RAY}'


@pytest.fixture(scope='module')
def polled(nemo_rl_on_ray: RayPlace) -> list[Any]:
    """What the rules make of all trainers on Ray, those that poll among them."""
    return on_ray(nemo_rl_on_ray, 'ruled', POLLS)


@pytest.mark.frameworks
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize('style', ['lens', 'otel'])
def test_workers_of_ray_and_loops_that_poll_are_in_the_picture(
    nemo_rl_on_ray: RayPlace, polled: list[Any], style: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(nemo_rl_on_ray.cwd)
    assert main(['apply', '--style', style, '--write', '.']) == 0
    assert on_ray(nemo_rl_on_ray, f'both, {style}', POLLS) == polled
    assert main(['revert', '.']) == 0


@pytest.mark.frameworks
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_but_a_step_that_polls_needs_no_rule_on_ray(
    nemo_rl_on_ray: RayPlace, polled: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that goes on in the next block (`continues_over`) does need it."""
    place = nemo_rl_on_ray
    ruled = on_ray(place, 'ruled, without polls', ON_RAY)
    monkeypatch.chdir(place.cwd)
    assert main(['apply', '--write', '.']) == 0
    # A function of Ray's own has a rule: what it tells of the span around it is not in this source.
    said = [tuple(part for part in span if part != 'rl.ray.cluster_source') for span in ruled]
    assert on_ray(place, 'alone', ON_RAY, bare=True) == said
    steps = [name for name, *_ in on_ray(place, 'alone, polls', 'async_ppo', bare=True) if name.endswith('.step')]
    assert not steps and [name for name, *_ in polled if name == 'rl.ppo.step']
    assert main(['revert', '.']) == 0


def on_ray(place: RayPlace, name: str, algorithms: str, bare: bool = False) -> list[Any]:
    """The spans, each with what it is below; in which order workers come to them differs from run to run."""
    folder = place.folder / name
    launcher = (place.python, '-c', BARE) if bare else (LENS,)
    options = ('--no-summary', '--run-dir', str(folder), '--span-groups', 'all')
    program = ('run_trainers.py', '--config', 'configs/all.yaml', '--algorithms', algorithms)
    done = place.execute(*launcher, *options, place.python, *program)
    assert done.code == 0, done.stderr[-3000:]
    run = Run(folder)
    assert not run.facts['faults']
    above = {span.id: span.name for span in run.spans}
    # How often a loop looks for a batch depends on the machine.
    left_out = ('ray.', 'rl.idle.buffer_starvation')
    found = [
        (span.name, above.get(span.parent, ''), span.status, *sorted(name for name in span.attributes))
        for span in run.spans
        if not span.name.startswith(left_out)
    ]
    return sorted(found)
