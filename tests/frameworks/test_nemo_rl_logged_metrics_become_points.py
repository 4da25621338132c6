# SPDX-License-Identifier: Apache-2.0
"""What NeMo-RL's logger is given is told as metric points too, once, whatever its values are."""

from __future__ import annotations

import json

from tests.helpers.run import Place, Run

PROGRAM = """\
import json
import sys
import threading
from nemo_rl.utils.logger import Logger, RayGpuMonitorLogger

logger = Logger({{'log_dir': 'logs'}})
{body}
print(len(open('logs/one.jsonl').readlines()), len(open('logs/two.jsonl').readlines()))
"""


def logged(place: Place, body: str, *options: str) -> Run:
    """The run of a program that logs; it must print the same without us."""
    place.write({'train.py': PROGRAM.format(body=body)})
    plain = place.plain('python', 'train.py')
    assert plain.code == 0, plain.stderr
    told = [path.read_text() for path in sorted((place.cwd / 'logs').iterdir())]
    for path in (place.cwd / 'logs').iterdir():
        path.unlink()
    run = place.record(*options, 'python', 'train.py')
    assert told == [path.read_text() for path in sorted((place.cwd / 'logs').iterdir())]
    return run


def values(run: Run) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for point in run.points:
        found.setdefault(point.name, []).append(point.value)
    return found


TRAIN = {
    'reward': 1,
    'kl_penalty': 2,
    'loss': 3,
    'critic/loss': 4,
    'approx_entropy': 5,
    'mean_gen_tokens_per_sample': 6,
    'grad_norm': 7,
    'lr': 8,
    'valid_tokens_per_sec_per_gpu': 9,
    'some_other': 10,
}


def test_each_documented_key_has_its_metric(nemo_rl: Place) -> None:
    body = f"""\
logger.log_metrics(json.loads('{json.dumps(TRAIN)}'), 1, prefix='train')
logger.log_metrics({{'tokens_per_sec': 11.5, 'samples_per_sec': 1.0}}, 1, prefix='performance')
"""
    assert values(logged(nemo_rl, body)) == {
        'rl.reward.mean': [1],
        'rl.kl_divergence': [2],
        'rl.policy_loss': [3],
        'rl.value_loss': [4],
        'rl.entropy': [5],
        'rl.response_length.mean': [6],
        'rl.grad_norm': [7],
        'rl.learning_rate': [8],
        'rl.tokens_per_sec': [11.5],
    }
    assert values(nemo_rl.record('--set', 'vocabulary=label', 'python', 'train.py')) == {
        'rl.reward.mean': [1],
        'rl.kl.divergence': [2],
        'rl.policy.loss': [3],
        'rl.value.loss': [4],
        'rl.entropy': [5],
        'rl.response.length.mean': [6],
        'rl.grad_norm': [7],
        'rl.learning_rate': [8],
        'rl.throughput.tokens_per_sec': [11.5],
    }


def test_other_prefixes_are_no_training(nemo_rl: Place) -> None:
    body = """\
logger.log_metrics({'reward': 0.5}, 1)
logger.log_metrics({'reward': 0.25}, 1, prefix='')
logger.log_metrics({'reward': 0.125}, 1, 'train')
for prefix in ('validation', 'timing/train', 'refit', 'ray', 'validation-one'):
    logger.log_metrics({'reward': 99.0, 'loss': 99.0, 'tokens_per_sec': 99.0, 'policy_time_s': 99.0}, 1, prefix=prefix)
logger.log_metrics({'vllm_init_time_s': 1.5, 'policy_init_time_s': 2, 'parallel_init_enabled': 1.0}, 0, 'timing/setup')
"""
    run = logged(nemo_rl, body)
    assert values(run) == {'rl.reward.mean': [0.5, 0.25, 0.125], 'rl.setup.duration': [1.5, 2]}
    phases = [point.attributes for point in run.points if point.name == 'rl.setup.duration']
    assert phases == [{'rl.setup.phase': 'vllm_init'}, {'rl.setup.phase': 'policy_init'}]


def test_what_is_no_number_is_left_out(nemo_rl: Place) -> None:
    body = """\
import math
import numpy as np
import torch

class Histogram:
    value = 1.0

class Unfriendly:
    def __float__(self):
        raise RuntimeError('nobody asked')
    __str__ = lambda self: 'unfriendly'

asked = []

class OnADevice(torch.Tensor):
    device = property(lambda self: torch.device('cuda', 0))
    is_cpu = property(lambda self: False)
    is_cuda = property(lambda self: True)

    def item(self):
        asked.append('item')  # this would wait for the device
        return 7.0

    __float__ = item

odd = [True, np.bool_(True), None, 'text', [1.0], {}, Histogram(), Unfriendly(), torch.tensor([1.0, 2.0])]
odd += [torch.empty((), device='meta'), torch.Tensor._make_subclass(OnADevice, torch.tensor(1.0))]
for value in odd:
    logger.log_metrics({'reward': value, 'loss': 0.5}, 1, prefix='train')
half = torch.tensor(0.5, dtype=torch.bfloat16)
for value in (np.float32(0.25), np.int64(2), torch.tensor(3.0), torch.tensor(4), half):
    logger.log_metrics({'reward': value}, 1, prefix='train')
logger.log_metrics({'lr': math.nan}, 1, prefix='train')
logger.log_metrics({'grad_norm': math.inf}, 1, prefix='train')
for key in ('reward', 'loss', 'critic/loss', 'approx_entropy', 'grad_norm', 'lr'):
    logger.log_metrics({'valid_tokens_per_sec_per_gpu': 1.0, 'kl_penalty': 0.5, key: Unfriendly()}, 1, prefix='train')
logger.log_metrics({'tokens_per_sec': Unfriendly()}, 1, prefix='performance')
logger.log_metrics({'vllm_init_time_s': Unfriendly(), 'policy_init_time_s': 2.0}, 0, 'timing/setup')
print('asked', len(asked))
"""
    # What a histogram prints may hold its address, so the files are not compared here.
    nemo_rl.write({'train.py': PROGRAM.format(body=body)})
    said = [line for line in nemo_rl.plain('python', 'train.py').stdout.splitlines() if line.startswith('asked')]
    assert said == ['asked 2']  # by the two backends
    assert said[0] in nemo_rl.lens('--run-dir', 'asked', 'python', 'train.py').stdout
    found = values(nemo_rl.record('python', 'train.py'))
    assert found.pop('rl.policy_loss') == [0.5] * 11
    assert found.pop('rl.reward.mean') == [0.25, 2, 3, 4, 0.5]
    # One value that is none costs its family nothing else.
    assert found.pop('rl.kl_divergence') == [0.5] * 6
    assert found.pop('rl.setup.duration') == [2.0]
    # A loss that is no longer finite is what somebody looks for.
    assert str(found) == "{'rl.learning_rate': [nan], 'rl.grad_norm': [inf]}"


def test_threads_log_side_by_side_and_nothing_counts_twice(nemo_rl: Place) -> None:
    body = """\
monitor = RayGpuMonitorLogger(logger)
monitor.start()
monitor.stop()
threads = [
    threading.Thread(
        target=lambda: [logger.log_metrics({'loss': float(step)}, step, prefix='train') for step in range(50)]
    )
    for _ in range(4)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
    nemo_rl.write({'train.py': PROGRAM.format(body=body)})
    found = values(nemo_rl.record('python', 'train.py'))
    assert {name: len(points) for name, points in found.items()} == {'rl.policy_loss': 200}  # of two backends each
    assert sorted(found['rl.policy_loss']) == sorted(float(step) for step in range(50) for _ in range(4))
