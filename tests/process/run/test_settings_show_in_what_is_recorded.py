# SPDX-License-Identifier: Apache-2.0
"""Each setting from each of its sources, told by what lies in the run folder afterwards rather than by `--info`."""

from __future__ import annotations

import pytest

from tests.helpers.run import Place, Run

TRAIN = ('python', 'train.py')
EVERYTHING = {'job', 'step', 'rollout', 'update', 'score'}
METRICS = {'reward', 'tokens'}
PHASES = EVERYTHING - {'job'}

# The config object with a `telemetry:` block that the program builds itself.
OWN_CONFIG = """\
import sys
import trainer
trainer.fit(trainer.Config({block!r}), 3)
"""

# A rank each, as torchrun starts them; each says so on stdout.
RANKS = """\
import os, subprocess, sys
world = int(sys.argv[1])
ranks = [
    subprocess.Popen(
        [sys.executable, 'train.py', '1'],
        env={**os.environ, 'RANK': str(rank), 'LOCAL_RANK': str(rank % 2), 'WORLD_SIZE': str(world)},
    )
    for rank in range(world)
]
for rank in ranks:
    rank.wait()
"""


def ranks(run: Run) -> list[int]:
    """Which ranks recorded spans."""
    return sorted({span.resource['dl.rank'] for span in run.spans if 'dl.rank' in span.resource})


def test_by_default_all_steps_their_phases_and_the_job_are_recorded(place: Place):
    run = place.record(*TRAIN)

    assert run.names() == EVERYTHING
    assert run.metric_names() == METRICS
    assert run.only('lens.run').resource['service.name'] == 'small_trainer'


@pytest.mark.parametrize(
    ('groups', 'names'),
    [
        ('default', {'job'}),
        ('per_step', PHASES),
        ('per_step,job', EVERYTHING),
        ('all', EVERYTHING),
        ('default,reward', {'job', 'score'}),
        ('rollout,policy_update', {'rollout', 'update'}),
        ('step', {'step'}),
    ],
)
def test_span_groups_choose_spans_and_leave_metrics_alone(place: Place, groups: str, names: set[str]):
    run = place.record('--span-groups', groups, *TRAIN)

    assert run.names() == names
    assert run.metric_names() == METRICS


@pytest.mark.parametrize(
    'arguments',
    [('--set', 'span_groups=reward', *TRAIN), (*TRAIN, '3', 'telemetry.span_groups=reward')]
    + [(*TRAIN, '3', f'{plus}telemetry.span_groups=reward') for plus in ('+', '++')]
    + [('--telemetry', 'telemetry.yaml', *TRAIN), (*TRAIN, '3', '--config', 'config.yaml')],
    ids=lambda arguments: ' '.join(arguments),
)
def test_arguments_and_files_set_span_groups(place: Place, arguments: tuple[str, ...]):
    block = 'telemetry:\n  span_groups: reward\n'
    place.write({'telemetry.yaml': block, 'config.yaml': block})

    assert place.record(*arguments).names() == {'score'}


@pytest.mark.parametrize('prefix', ['LENS_', 'NEMO_RL_OTEL_', 'NEMO_GYM_OTEL_', 'NEMO_LENS_'])
def test_every_family_of_variables_is_read(place: Place, prefix: str):
    settings = {'SPAN_GROUPS': 'reward', 'METRICS_ENABLED': 'off', 'SERVICE_NAME': 'from the environment'}
    run = place.record(*TRAIN, env={prefix + name: value for name, value in settings.items()})

    assert run.names() == {'score'}
    assert run.points == []
    assert {span.resource['service.name'] for span in run.spans} == {'from the environment'}


def test_the_stronger_source_shows(place: Place):
    place.write({'telemetry.yaml': 'span_groups: step\n'})
    weaker = {'env': {'NEMO_RL_OTEL_SPAN_GROUPS': 'job'}}
    argument = 'telemetry.span_groups=rollout'

    assert place.record('--telemetry', 'telemetry.yaml', *TRAIN).names() == {'step'}
    assert place.record('--telemetry', 'telemetry.yaml', *TRAIN, '3', argument).names() == {'rollout'}
    assert place.record(*TRAIN, '3', argument, **weaker).names() == {'job'}
    assert place.record(*TRAIN, env={**weaker['env'], 'LENS_SPAN_GROUPS': 'reward'}).names() == {'score'}
    assert place.record('--span-groups', 'policy_update', *TRAIN, **weaker).names() == {'update'}


@pytest.mark.parametrize('where', ['flag', 'variable', 'argument', 'own config'])
def test_without_traces_there_are_metrics_and_without_metrics_traces(place: Place, where: str):
    for field, names, metrics in (('traces_enabled', set(), METRICS), ('metrics_enabled', EVERYTHING, set())):
        if where == 'flag':
            run = place.record('--set', f'{field}=false', *TRAIN)
        elif where == 'variable':
            run = place.record(*TRAIN, env={f'LENS_{field.upper()}': '0'})
        elif where == 'argument':
            run = place.record(*TRAIN, '3', f'++telemetry.{field}=false')
        else:
            place.write({'own.py': OWN_CONFIG.format(block={field: False})})
            run = place.record('python', 'own.py')

        assert run.names() == names
        assert run.metric_names() == metrics


@pytest.mark.parametrize('source', ['--set enabled=false', 'LENS_ENABLED', 'NEMO_RL_OTEL_ENABLED', 'argument'])
def test_disabled_runs_record_nothing_at_all_and_say_so(place: Place, source: str):
    arguments = source.split() if source.startswith('--') else []
    more = ['3', 'telemetry.enabled=false'] if source == 'argument' else []
    env = {source: '0'} if '_' in source and not arguments else {}

    done = place.lens(*arguments, *TRAIN, *more, env=env)

    assert (done.code, place.runs) == (0, [])
    assert done.stdout == place.plain(*TRAIN).stdout
    if source == 'argument':
        assert 'telemetry.enabled=false' in done.stderr


def test_the_runs_own_config_switches_off_what_is_recorded_and_announces_it(place: Place):
    place.write({'own.py': OWN_CONFIG.format(block={'enabled': False})})

    done = place.lens('python', 'own.py')

    assert done.stdout == place.plain('python', 'own.py').stdout
    assert place.run.names() == set()
    assert place.run.points == []
    assert place.run.facts['settings']['enabled'] == [False, "the program's own config"]
    assert '0 spans recorded' in done.stderr
    assert "enabled is off: the program's own config" in done.stderr


@pytest.mark.parametrize(
    ('block', 'names'),
    [
        ({'span_groups': 'reward'}, {'score'}),
        ({'span_groups': ['reward', 'rollout']}, {'score', 'rollout'}),
        ({'span_groups': 'default'}, {'job'}),
        ({'service_name': 'own'}, EVERYTHING),
        ({'exporter': 'carrier pigeon', 'traces_enabled': 'perhaps', 'export_rank': []}, EVERYTHING),
        ({'unknown': 3}, EVERYTHING),
    ],
    ids=str,
)
def test_the_runs_own_config_holds_from_the_moment_it_is_built(place: Place, block: dict[str, object], names: set[str]):
    place.write({'own.py': OWN_CONFIG.format(block=block)})

    run = place.record('python', 'own.py')

    assert run.names() == names
    service = str(block.get('service_name', 'small_trainer'))
    assert {span.resource['service.name'] for span in run.spans if span.name != 'lens.run'} == {service}


def test_a_group_nobody_knows_in_the_runs_own_config_falls_back_and_is_reported(place: Place):
    place.write({'own.py': OWN_CONFIG.format(block={'span_groups': 'nonsense'})})

    done = place.lens('python', 'own.py')

    assert (done.code, done.stdout) == (0, place.plain('python', 'own.py').stdout)
    assert place.run.names() == {'job'}
    assert 'nonsense' in done.stderr


def test_flags_and_variables_win_over_the_runs_own_config(place: Place):
    place.write({'own.py': OWN_CONFIG.format(block={'span_groups': 'reward', 'enabled': False})})

    assert place.record('--span-groups', 'step', '--set', 'enabled=true', 'python', 'own.py').names() == {'step'}
    assert place.record(
        'python', 'own.py', env={'LENS_SPAN_GROUPS': 'rollout', 'NEMO_LENS_ENABLED': 'yes'}
    ).names() == {'rollout'}


@pytest.mark.parametrize(
    ('settings', 'who'),
    [
        ({}, [0, 1, 2, 3]),
        ({'export_strategy': 'all_ranks'}, [0, 1, 2, 3]),
        ({'export_strategy': 'single_rank'}, [3]),
        ({'export_strategy': 'single_rank', 'export_rank': '1'}, [1]),
        ({'export_strategy': 'first_rank_per_node'}, [0, 2]),
        ({'export_strategy': 'sampled', 'export_sample_rate': '0'}, []),
        ({'export_strategy': 'sampled', 'export_sample_rate': '1'}, [0, 1, 2, 3]),
        ({'sampler_enabled': 'true', 'export_sample_rate': '0'}, []),
        ({'export_sample_rate': '0'}, [0, 1, 2, 3]),
    ],
    ids=str,
)
def test_ranks_that_export_are_those_the_strategy_names(place: Place, settings: dict[str, str], who: list[int]):
    """LOCAL_RANK is 0 for the ranks 0 and 2: two nodes of two."""
    place.write({'ranks.py': RANKS})
    flags = [word for name, value in settings.items() for word in ('--set', f'{name}={value}')]

    run = place.record(*flags, 'python', 'ranks.py', '4')

    assert ranks(run) == who
    assert sorted({point.resource['dl.rank'] for point in run.points}) == who


def test_sampled_ranks_follow_from_run_id_and_rank_alone(place: Place):
    place.write({'ranks.py': RANKS})
    flags = ('--set', 'export_strategy=sampled', '--set', 'export_sample_rate=0.5')
    env = {'LENS_RUN_ID': 'job 17'}

    first, second = (place.record(*flags, 'python', 'ranks.py', '6', env=env) for _ in range(2))

    assert ranks(first) == ranks(second)
    assert 0 < len(ranks(first)) < 6
    assert [run.path.name for run in place.runs] == ['job_17', 'job_17.1']
    assert {span.resource['nemo.run.id'] for run in (first, second) for span in run.spans} == {'job 17'}


def test_service_name_comes_from_otel_variables_too(place: Place):
    def name(**env: str) -> str:
        [found] = {span.resource['service.name'] for span in place.record(*TRAIN, '1', env=env).spans}
        return found

    assert name(OTEL_SERVICE_NAME='from otel') == 'from otel'
    assert name(OTEL_RESOURCE_ATTRIBUTES='service.name=from%20attributes,team=rl') == 'from attributes'
    assert name(OTEL_SERVICE_NAME='weaker', LENS_SERVICE_NAME='stronger') == 'stronger'


def test_resource_attributes_of_the_user_are_on_everything(place: Place):
    env = {'OTEL_RESOURCE_ATTRIBUTES': 'team=rl,cluster=a%2Cb', 'NEMO_RL_OTEL_USER_ID': 'ann', 'SLURM_JOB_ID': '4711'}
    run = place.record(*TRAIN, '1', env=env)

    for item in (*run.spans, *run.points):
        assert (item.resource['team'], item.resource['cluster']) == ('rl', 'a,b')
        assert item.resource['nemo.run.id'] == '4711'
        assert item.resource['nemo.user.id'] == 'ann'
