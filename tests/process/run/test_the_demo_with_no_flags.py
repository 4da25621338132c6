# SPDX-License-Identifier: Apache-2.0
"""`lens-instrument python examples/run_grpo.py`: what a newcomer gets, from the picture on the screen to the files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers.run import REPOSITORY, Done, Place, Run

COMMAND = ('python', str(REPOSITORY / 'examples' / 'run_grpo.py'))
DURATION = r'[\d.]+ (?:us|ms|s|min|h)\b'
SMALL = ('--steps', '4', '--prompts-per-step', '4', '--group-size', '4', '--save-every', '2', '--validate-every', '4')


class Demo:
    """One run of it."""

    def __init__(self, folder: Path) -> None:
        self.place = Place(folder)
        self.done: Done = self.place.lens(*COMMAND, *SMALL)
        self.run: Run = self.place.run


@pytest.fixture(scope='module')
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return Demo(tmp_path_factory.mktemp('demo'))


def test_each_step_is_a_tree_of_its_phases_linked_to_the_job(demo: Demo):
    step = """\
      rl.grpo.data_processing
      rl.grpo.collect_rollouts
        rl.grpo.generate rl.weight_version={version}
      rl.grpo.compute_rewards
      rl.grpo.compute_logprobs
      rl.grpo.compute_advantages
      rl.grpo.policy_update rl.iteration={step}"""
    save = '\n      rl.grpo.save_checkpoint rl.step={step}'
    evaluate = '\n      rl.grpo.evaluate rl.step={step}\n        rl.grpo.generate rl.weight_version={after}'
    steps = [
        f'    ~ rl.grpo.step rl.iteration={number}\n'
        + (step + (save if number % 2 == 0 else '') + (evaluate if number == 4 else '')).format(
            step=number, version=number - 1, after=number
        )
        for number in (1, 2, 3, 4)
    ]

    shown = demo.run.tree('rl.steps', 'rl.iteration', 'rl.step', 'rl.weight_version')
    assert shown == '\n'.join(['lens.run', '  rl.grpo.job rl.steps=4', *steps])


def test_steps_are_root_traces_linked_to_run_and_job(demo: Demo):
    root, job, steps = demo.run.only('lens.run'), demo.run.only('rl.grpo.job'), demo.run.named('rl.grpo.step')

    assert (job.trace, job.parent, root.parent) == (root.trace, root.id, '')
    assert root.trace == demo.run.facts['trace_id']
    assert len({step.trace for step in steps} | {root.trace}) == 5
    for step in steps:
        assert step.parent == ''
        assert set(step.links) == {(root.trace, root.id), (job.trace, job.id)}


def test_children_lie_within_their_parents_in_time(demo: Demo):
    spans = {span.id: span for span in demo.run.spans}
    checked = 0
    for span in spans.values():
        if span.parent:
            parent = spans[span.parent]
            assert span.trace == parent.trace
            assert parent.start <= span.start <= span.end <= parent.end
            checked += 1
    assert checked > 20


def test_its_resource_says_which_run_process_and_model(demo: Demo):
    resource = demo.run.only('rl.grpo.job').resource
    launcher = demo.run.only('lens.run').resource

    assert resource['service.name'] == launcher['service.name'] == 'tiny_grpo'
    assert resource['nemo.run.id'] == launcher['nemo.run.id'] == demo.run.path.name
    assert resource['service.instance.id'] != launcher['service.instance.id']
    assert (resource['lens.role'], launcher['lens.role']) == ('driver', 'launcher')
    assert (resource['rl.algorithm'], resource['rl.model'], resource['nemo.precision']) == (
        'grpo',
        'tiny-2x64',
        'float32',
    )
    assert {'host.name', 'process.pid', 'telemetry.sdk.name'} <= resource.keys()


def test_its_metrics_are_the_printed_ones(demo: Demo):
    printed = [line.split() for line in demo.done.stdout.splitlines() if line.startswith('train ')]
    values = [float(words[words.index('reward') + 1]) for words in printed]
    tokens = [int(words[words.index('generated_tokens') + 1]) for words in printed]
    points = demo.run.points

    assert [round(point.value, 6) for point in points if point.name == 'rl.reward.mean'] == values
    assert [point.value for point in points if point.name == 'rl.generated_tokens'][-1] == sum(tokens)
    assert demo.run.metric_names() == {
        'rl.reward.mean',
        'rl.policy_loss',
        'rl.kl_divergence',
        'rl.grad_norm',
        'rl.learning_rate',
        'rl.response_length.mean',
        'rl.generated_tokens',
        'rl.validation.reward.mean',
        'rl.validation.accuracy',
    }


def test_run_json_tells_how_it_went(demo: Demo):
    facts = demo.run.facts
    rules = {rule['name']: rule for rule in facts['rules'] if rule['processes']}  # the others are for its other modes

    assert (facts['complete'], facts['exit_code'], facts['signal'], facts['unsent']) == (True, 0, None, {})
    assert facts['settings']['exporter'] == ['file', 'default (no OTLP endpoint is set)']
    assert facts['settings']['span_groups'] == ['per_step,job', 'default (exporter is file)']
    assert [(one['role'], one['outcome'], one['alive']) for one in facts['processes']] == [('driver', 'armed', False)]
    assert rules['rl.grpo.job']['calls'] == 1
    assert rules['rl.grpo.job']['spans'] == 1
    assert facts['faults'] == {}


def test_nothing_is_left_elsewhere(demo: Demo):
    assert not (demo.run.path / 'journal').exists()
    assert [path for path in (demo.place.folder / 'tmp').rglob('*.jnl')] == []
    assert (demo.run.path.stat().st_mode & 0o777) == 0o700


def test_the_screen_ends_with_job_over_steps_over_phases(demo: Demo):
    """Sorted by time spent, so the order of phases is the run's own; figures are N."""
    text = demo.done.stderr[demo.done.stderr.index('lens-auto  run') :]
    head, table, metrics, end = masked(text, demo.run.path.name).strip().split('\n\n')

    assert head == 'lens-auto run ID T exit 0'
    title, job, step, *phases = table.split('\n')
    assert (title, job, step) == (
        'span count total mean p50 p95 of step',
        'rl.grpo.job N T T',
        '└─ rl.grpo.step N T T T T N %',
    )
    assert sorted(blocks(phases)) == [
        'idle T N %',
        'rl.grpo.collect_rollouts N T T T T N % > rl.grpo.generate N T T T T N %',
        'rl.grpo.compute_advantages N T T T T N %',
        'rl.grpo.compute_logprobs N T T T T N %',
        'rl.grpo.compute_rewards N T T T T N %',
        'rl.grpo.data_processing N T T T T N %',
        'rl.grpo.evaluate N T T N % > rl.grpo.generate N T T N %',
        'rl.grpo.policy_update N T T T T N %',
        'rl.grpo.save_checkpoint N T T T T N %',
    ]
    assert (
        metrics
        == """\
metrics rl.reward.mean N → N
rl.validation.reward.mean N
rl.policy_loss N → N
rl.validation.accuracy N
rl.kl_divergence N → N
rl.grad_norm N → N
rl.learning_rate N → N
rl.response_length.mean N → N {token}
N more in the run folder"""
    )
    assert (
        end
        == """\
37 spans from 1 of 1 process, 30 metric points
folder lens-runs/ID"""
    )


def masked(text: str, run_id: str) -> str:
    """Durations as T, other figures as N, the run's id as ID, columns one space apart; the last block keeps its own."""
    body, _, end = text.replace(run_id, 'ID').rpartition('\n\n')
    head, _, body = body.partition('\n')
    body = re.sub(DURATION, 'T', body)
    body = re.sub(r'(?<![\w.])-?\d[\d.e-]*(?!\w)', 'N', body)
    text = '\n'.join([re.sub(DURATION, 'T', head), body, '', end])
    lines = [re.sub(r'(?<=\S) +', ' ', line).rstrip() for line in text.split('\n')]
    return '\n'.join(line if '─' in line else line.strip() for line in lines)


def blocks(lines: list[str]) -> list[str]:
    """Phases of the step, each with what it holds."""
    found: list[str] = []
    for line in lines:
        name = line.lstrip(' │├└─')
        if line.startswith(('   │ ', '     ')):
            found[-1] += f' > {name}'
        else:
            found.append(name)
    return found
