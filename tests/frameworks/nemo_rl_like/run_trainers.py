# SPDX-License-Identifier: Apache-2.0
"""Trains with one algorithm after the other: `run_trainers.py --config FILE [--local] ALGORITHM...`.

With `--local` the workers are objects of this process and nothing of Ray is started.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import ray
from nemo_rl.algorithms import distillation, dpo, grpo, grpo_sync, ppo, rm, sft
from nemo_rl.data.utils import setup_response_data
from nemo_rl.distributed.virtual_cluster import init_ray
from nemo_rl.models.generation.vllm.vllm_generation import VllmGeneration
from nemo_rl.models.policy.lm_policy import Policy
from nemo_rl.models.value.lm_value import Value
from nemo_rl.utils.config import load_config, parse_hydra_overrides
from nemo_rl.utils.logger import Logger


class LocalWorkers:
    """Answers as a group of workers does, without any."""

    def run_all_workers_single_data(self, method_name: str, **kwargs: Any) -> list[Any]:
        if method_name == 'train':
            return [{'loss': 0.5, 'grad_norm': 0.5, 'lr': 1e-5}]
        if method_name == 'generate_text':
            return [{'texts': ['x'] * len(kwargs['data']['input_lengths'])}]
        if method_name == 'generate':
            return [{'generation_lengths': [3] * len(kwargs['data']['input_lengths'])}]
        return [[1.0]]


def use_actors(batch: Any) -> None:
    """Call what is an actor by itself, without a group of workers."""
    from nemo_rl.experience.sync_rollout_actor import SyncRolloutActor
    from nemo_rl.models.generation.sglang.sglang_worker import SGLangGenerationWorker

    rollouts: Any = SyncRolloutActor.options(num_cpus=0).remote()
    print(ray.get(rollouts.rollout_to_tq.remote(batch, partition_id='train', group_size=4)), flush=True)
    server: Any = SGLangGenerationWorker.options(num_cpus=0).remote()
    ray.get(server.init.remote('127.0.0.1:1', 1, 2, '127.0.0.1', '127.0.0.1', 3))
    ray.get(server.update_weights_from_tensor.remote([]))
    ray.get([server.release_memory_occupation.remote(), server.resume_memory_occupation.remote()])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument('--config')
    parser.add_argument('--local', action='store_true')
    parser.add_argument('--algorithms', default='grpo')
    args, overrides = parser.parse_known_args()
    config = parse_hydra_overrides(load_config(args.config), overrides)
    data, val_data = setup_response_data(None, config['data'])
    workers = LocalWorkers() if args.local else None
    if not args.local:
        init_ray()
    policy = Policy(config['policy'], workers=workers)
    generation = VllmGeneration(config['policy']['generation'], workers=workers)
    logger = Logger(config['logger'])
    for name in args.algorithms.split(','):
        print(name, flush=True)
        if name == 'grpo':
            grpo.grpo_train(policy, generation, data, val_data, None, None, logger, grpo.MasterConfig(**config))
        elif name == 'grpo_sync':
            master_config = grpo.MasterConfig(**config)
            grpo_sync.grpo_train_sync(policy, generation, data, val_data, logger, master_config)
        elif name == 'ppo':
            value = Value(config['policy'])
            ppo.ppo_train(policy, value, generation, data, val_data, logger, ppo.MasterConfig(**config))
        elif name == 'async_ppo':
            # Its config alone, as its launcher has it.
            master_config = ppo.MasterConfig(**{key: part for key, part in config.items() if key != 'grpo'})
            ppo.async_ppo_train(policy, Value(config['policy']), generation, data, val_data, logger, master_config)
        elif name == 'sc':
            from nemo_rl.algorithms.single_controller import SingleControllerActor

            controller: Any = SingleControllerActor.options(num_cpus=0, name='controller').remote(policy, 2)
            print(ray.get(controller.run.remote()), flush=True)
        elif name == 'actors':
            use_actors(data[0])
        elif name == 'sft':
            sft.sft_train(policy, data, val_data, logger, sft.MasterConfig(**config))
        elif name == 'dpo':
            dpo.dpo_train(policy, data, {'one': val_data}, logger, dpo.MasterConfig(**config))
        elif name == 'rm':
            rm.rm_train(policy, data, {'one': val_data}, logger, rm.MasterConfig(**config))
        elif name == 'distillation':
            master_config = distillation.MasterConfig(**config)
            distillation.distillation_train(policy, policy, generation, data, val_data, logger, master_config)
        else:
            sys.exit(f'{name} is not known')
    print('done', flush=True)


if __name__ == '__main__':
    main()
