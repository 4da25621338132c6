# SPDX-License-Identifier: Apache-2.0
"""Trains with GRPO: `run_grpo.py --config FILE [++key=value...]`."""

from __future__ import annotations

import argparse
import time

from nemo_rl.algorithms.grpo import MasterConfig, async_grpo_train, grpo_train, setup
from nemo_rl.algorithms.utils import get_tokenizer
from nemo_rl.data.utils import setup_response_data
from nemo_rl.distributed.virtual_cluster import init_ray
from nemo_rl.utils.config import load_config, parse_hydra_overrides
from nemo_rl.utils.timer import Timer


def main() -> None:
    started = time.perf_counter()
    rl_init_timer = Timer(context={'worker': 'driver'})
    parser = argparse.ArgumentParser()
    parser.add_argument('--config')
    args, overrides = parser.parse_known_args()
    with rl_init_timer.time('config'):
        config = MasterConfig(**parse_hydra_overrides(load_config(args.config), overrides))
    with rl_init_timer.time('ray_connect'):
        init_ray()
    with rl_init_timer.time('tokenizer'):
        tokenizer = get_tokenizer(config.policy['tokenizer'])
    with rl_init_timer.time('data'):
        dataset, val_dataset = setup_response_data(tokenizer, config.data)
    with rl_init_timer.time('setup'):
        policy, generation, logger = setup(config)
    rl_init_timer.record('total', time.perf_counter() - started)
    train = async_grpo_train if config.grpo.async_grpo['enabled'] else grpo_train
    train(policy, generation, dataset, val_dataset, tokenizer, None, logger, config)
    generation.shutdown()
    print('done', flush=True)


if __name__ == '__main__':
    main()
