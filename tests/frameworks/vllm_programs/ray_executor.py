# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false
"""An offline engine whose workers are Ray actors; prints the numbers of tokens generated, as JSON."""

from __future__ import annotations

import json
import sys
import time

import cpu_on_ray
import ray
import trainer


def main() -> None:
    ray.init(
        address='local',
        num_cpus=2,
        num_gpus=1,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={'worker_process_setup_hook': 'cpu_on_ray.allow'},
    )
    cpu_on_ray.allow()
    from vllm import LLM, SamplingParams

    engine = LLM(
        model=sys.argv[1],
        max_model_len=256,
        dtype='float32',
        enforce_eager=True,
        max_num_seqs=8,
        distributed_executor_backend='ray',
    )
    asked = SamplingParams(max_tokens=5, temperature=0.0, ignore_eos=True)

    def rollout() -> list[int]:
        return [len(each.outputs[0].token_ids) for each in engine.generate(['one two', 'plus'], asked, use_tqdm=False)]

    found = [trainer.step(rollout)]
    time.sleep(1.2)  # executions are told of once a second
    found.append(trainer.step(rollout))
    print(json.dumps(found), flush=True)


if __name__ == '__main__':
    main()
