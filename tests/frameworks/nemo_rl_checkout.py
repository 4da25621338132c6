# SPDX-License-Identifier: Apache-2.0
"""NeMo-RL's own unit tests, with and without us: the same outcome of each, and the span trees its documentation shows.

They drive the real training loops with mock policies, and need no GPU. Not collected by default; to run it:

    LENS_TEST_NEMO_RL=<checkout> LENS_TEST_NEMO_RL_PYTHON=<python of a venv with its requirements> \
        python -m pytest tests/frameworks/nemo_rl_checkout.py

`LENS_TEST_NEMO_RL_SUITES=grpo,utils` runs some of the suites. NeMo-RL asks for Python 3.13; on 3.11 its pydantic models
need the `TypedDict` of typing_extensions for that of typing, which a sitecustomize of the venv can see to. Written for
commit 7ea279ab.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.helpers.run import LENS, REPOSITORY, SCRIPTS, Run, Span

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(3600)]

RULES = REPOSITORY / 'rules' / 'nemo_rl.yaml'
SUITES = {
    'grpo': ('algorithms/test_grpo.py',),
    'trainers': tuple(f'algorithms/test_{name}.py' for name in ('ppo', 'sft', 'dpo', 'rm', 'distillation')),
    'ppo': ('algorithms/test_ppo.py',),
    'utils': ('utils/test_timer.py', 'utils/test_logger.py'),
    'single_controller': ('single_controller',),
    'experience': ('experience',),
}

# How often a test with another outcome than without us is run again without us: does it have that outcome there too?
UNRELIABLE = 8

# Plugins of ours beside this file: NeMo-RL's PPO tests replace the timer, and without one there are no phases.
PLUGINS = {'ppo': ('-p', 'real_ppo_timer')}

# The phases of a step in the order they are timed. Each step shows some of them, in this order. `*`: any number.
SYNC = (
    'data_processing prepare_for_generation collect_rollouts compute_rewards dynamic_sampling data_processing refit'
    ' logprob_inference_prep compute_logprobs compute_advantages training_prep policy_update recompute_kv_scales refit'
    ' evaluate refit save_checkpoint'
)
ASYNC = (
    'exposed_generation* compute_rewards data_processing exposed_generation logprob_inference_prep compute_logprobs'
    ' compute_advantages training_prep policy_update idle.refit_bubble* offload_before_refit idle.refit_bubble refit'
    ' evaluate refit save_checkpoint'
)
PPO_UPDATE = ' value_training_prep value_update training_prep policy_update'
PPO_SYNC = (
    'data_processing prepare_for_generation collect_rollouts compute_rewards dynamic_sampling data_processing'
    ' value_inference logprob_inference_prep compute_logprobs compute_advantages'
    f'{2 * PPO_UPDATE} recompute_kv_scales policy_offload_after_refit evaluate save_checkpoint'
)
PPO_ASYNC = (
    'exposed_generation* data_processing value_inference logprob_inference_prep compute_logprobs compute_advantages'
    f'{2 * PPO_UPDATE} idle.refit_bubble evaluate save_checkpoint'
)
# The single controller trains on what is there, chunk by chunk.
CHUNK = ' idle.buffer_starvation logprob_inference_prep compute_logprobs compute_advantages training_prep policy_update'
STEPS = {
    'grpo': (SYNC, ASYNC),
    'ppo': (PPO_SYNC, PPO_ASYNC),
    'sft': ('data_processing policy_update evaluate save_checkpoint',),
    'dpo': ('policy_update evaluate save_checkpoint',),
    'rm': ('policy_update evaluate save_checkpoint',),
    'distillation': (
        'data_processing prepare_for_generation collect_rollouts data_processing teacher_logprob_inference_prep'
        ' teacher_logprobs training_prep policy_update refit evaluate refit save_checkpoint',
    ),
    'sc': (4 * CHUNK + ' policy_update idle.refit_bubble save_checkpoint',),
}
# Documented, and not reached: the tests stand in for `validate`, for the policy of a reward model (whose update is not
# timed), and for all rollouts that dynamic sampling could throw away.
UNREACHED = {
    'grpo': {'evaluate', 'dynamic_sampling'},
    'ppo': {'evaluate', 'dynamic_sampling', 'recompute_kv_scales', 'policy_offload_after_refit'},
    'sft': {'evaluate'},
    'dpo': {'evaluate'},
    'rm': {'evaluate', 'policy_update'},
    'distillation': {'evaluate', 'refit'},
    'sc': set[str](),
}
# What else lies where: under a job, and under phases.
BELOW = {
    'rl.grpo.job': {'rl.grpo.step', 'rl.init.total', 'rl.refit'},
    'rl.ppo.job': {'rl.ppo.step', 'rl.init.total'},
    'rl.sft.job': {'rl.sft.step'},
    'rl.dpo.job': {'rl.dpo.step'},
    'rl.rm.job': {'rl.rm.step'},
    'rl.distillation.job': {'rl.distillation.step'},
    'rl.grpo.data_processing': {'rl.grpo.overlong_filter', 'rl.grpo.mask_sample_filter'},
    'rl.grpo.prepare_for_generation': {'rl.refit'},
    'rl.ppo.prepare_for_generation': {'rl.ppo.policy_offload_after_refit'},
}
BUCKETS = {
    'data_processing': 'overhead',
    'compute_rewards': 'productive',
    'compute_logprobs': 'overhead',
    'teacher_logprobs': 'overhead',
    'compute_advantages': 'overhead',
    'policy_update': 'productive',
    'save_checkpoint': 'overhead',
    'refit_bubble': 'idle',
    'job': None,
    'step': None,
    'collect_rollouts': None,
    'evaluate': None,
}


# Read once, here: our settings are taken out of each test's environment.
GIVEN = {name: value for name, value in os.environ.items() if name.startswith('LENS_TEST_NEMO_RL')}


def _place(variable: str) -> Path:
    if not GIVEN.get(variable):
        pytest.skip(f'{variable} is not set')
    return Path(GIVEN[variable])


def _wanted() -> list[str]:
    listed = [part.strip() for part in GIVEN.get('LENS_TEST_NEMO_RL_SUITES', '').split(',')]
    return [part for part in listed if part] or list(SUITES)


@functools.cache
def _alone() -> tuple[str, ...]:
    """Other Ray clusters on the machine disturb the tests' own: where possible they get a process list of their own."""
    alone = ('unshare', '-pf', '--mount-proc')
    able = shutil.which('unshare') and not subprocess.run([*alone, 'true'], capture_output=True, check=False).returncode
    return alone if able else ()


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(('PYTEST_', 'COV_', 'PYTHON'))}
    return kept | {
        'PATH': f'{SCRIPTS}:{os.environ["PATH"]}',
        'PYTHONPATH': f'.:{Path(__file__).parent}',
        'RAY_USAGE_STATS_ENABLED': '0',
        'CUDA_VISIBLE_DEVICES': '',
        'HF_HUB_OFFLINE': '1',
    }


def _outcomes(folder: Path, suite: str, *launcher: str, only: Iterable[str] = ()) -> dict[str, str]:
    """Run a suite, or only some of its tests; what became of each."""
    checkout, python = _place('LENS_TEST_NEMO_RL'), _place('LENS_TEST_NEMO_RL_PYTHON')
    report = folder / 'outcomes.xml'
    options = ('-o', 'addopts=', '-q', '-p', 'no:cacheprovider', '-W', 'ignore', '--timeout=120')
    paths = [*only] or [f'tests/unit/{path}' for path in SUITES[suite]]
    options += (*PLUGINS.get(suite, ()), f'--junitxml={report}', '-o', 'junit_family=xunit1')
    command = [*_alone(), *launcher, str(python), '-m', 'pytest', *paths, *options]
    with (folder / 'output.log').open('wb') as output:
        subprocess.run(command, cwd=checkout, env=_environment(), stdout=output, stderr=output, check=False)
    assert report.exists(), (folder / 'output.log').read_text()[-4000:]
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).iter('testcase'):
        kinds = {child.tag for child in case} & {'failure', 'error', 'skipped'}
        path, names = case.get('file', ''), case.get('classname', '').split('.')
        classes = names[len(Path(path).with_suffix('').parts) :]
        found['::'.join((path, *classes, case.get('name', '')))] = min(kinds, default='passed')
    return found


@pytest.fixture(scope='module', params=_wanted())
def suite(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope='module')
def with_us(suite: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], Run]:
    """The outcomes of a suite under the launcher, and its run."""
    _place('LENS_TEST_NEMO_RL')
    folder = tmp_path_factory.mktemp(f'{suite}-with')
    arguments = ('--rules', str(RULES), '--span-groups', 'all', '--run-dir', str(folder / 'run'), '--no-summary')
    return _outcomes(folder, suite, LENS, *arguments), Run(folder / 'run')


def test_each_test_has_the_outcome_it_has_without_us(
    suite: str, with_us: tuple[dict[str, str], Run], tmp_path: Path
) -> None:
    without = _outcomes(tmp_path, suite)
    outcomes, run = with_us
    assert len(without) >= 100 or suite == 'ppo'
    differing = {name for name in {*without, *outcomes} if without.get(name) != outcomes.get(name)}
    assert differing <= {*without} & {*outcomes}
    # Some wait for a task that they cancel at the moment it ends, and now and then for ever: without us as well.
    for turn in range(UNRELIABLE):
        if not differing:
            break
        folder = tmp_path / str(turn)
        folder.mkdir()
        again = _outcomes(folder, suite, only=sorted(differing))
        differing = {name for name in differing if again[name] != outcomes[name]}
    assert {name: (without[name], outcomes[name]) for name in differing} == {}
    assert not run.facts['faults']


def test_the_spans_lie_as_documented(suite: str, with_us: tuple[dict[str, str], Run]) -> None:
    run = with_us[1]
    ours = [span for span in run.spans if span.name.startswith('rl.')]
    children = dict(_children(ours))
    for algorithm, orders in STEPS.items():
        steps = [span for span in ours if span.name == f'rl.{algorithm}.step']
        shown: set[str] = set()
        for step in steps:
            names = [_short(child, algorithm) for child in children.get(step.id, [])]
            shown.update(names)
            assert any(_in_order(names, order.split()) for order in orders), (algorithm, names)
        documented = {word.rstrip('*') for order in orders for word in order.split()}
        assert shown == (documented - UNREACHED[algorithm] if steps else set()), algorithm
    for parent, names in BELOW.items():
        parents = [span for span in ours if span.name == parent]
        found = {child.name for span in parents for child in children.get(span.id, [])}
        # Where its timer is replaced, a job has nothing below.
        assert found == names or not found, (parent, found)


def test_each_span_has_its_bucket(suite: str, with_us: tuple[dict[str, str], Run]) -> None:
    wrong = {
        (span.name, span.attributes.get('rl.bucket'))
        for span in with_us[1].spans
        if (last := span.name.rpartition('.')[2]) in BUCKETS and span.name.startswith('rl.')
        if span.attributes.get('rl.bucket') != BUCKETS[last]
    }
    assert wrong == set()


def test_every_target_is_there() -> None:
    checkout, python = _place('LENS_TEST_NEMO_RL'), _place('LENS_TEST_NEMO_RL_PYTHON')
    command = [str(SCRIPTS / 'lens-rules'), 'check', '--python', str(python), str(RULES)]
    done = subprocess.run(command, cwd=checkout, env=_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.rstrip().rpartition('\n')[2]
    assert 'matched' in last and 'missing' not in last and 'ambiguous' not in last


def _children(spans: list[Span]) -> Iterator[tuple[str, list[Span]]]:
    """The spans under each: its children, and the roots that link to it."""
    below: dict[str, list[Span]] = {}
    for span in spans:
        over = [span.parent] if span.parent else [target for _, target in span.links]
        for parent in over:
            below.setdefault(parent, []).append(span)
    yield from below.items()


def _short(span: Span, algorithm: str) -> str:
    return span.name.removeprefix(f'rl.{algorithm}.').removeprefix('rl.')


def _in_order(names: list[str], order: list[str]) -> bool:
    """Whether names come in an order, in which some may be left out and starred ones repeated."""
    at = 0
    for name in names:
        while at < len(order) and order[at].rstrip('*') != name:
            at += 1
        if at == len(order):
            return False
        at += 0 if order[at].endswith('*') else 1
    return True
