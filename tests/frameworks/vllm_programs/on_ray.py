# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false
"""An engine in a Ray actor, called by a driver's steps; prints the numbers of tokens generated, as JSON."""

from __future__ import annotations

import json
import sys
import time

import ray
import trainer


@ray.remote(num_cpus=1)
class Generator:
    def __init__(self, model: str) -> None:
        from vllm import LLM

        self.engine = LLM(model=model, max_model_len=256, dtype='float32', enforce_eager=True, max_num_seqs=8)

    def rollout(self, prompts: list[str]) -> list[int]:
        from vllm import SamplingParams

        asked = SamplingParams(max_tokens=5, temperature=0.0, ignore_eos=True)
        return [len(each.outputs[0].token_ids) for each in self.engine.generate(prompts, asked, use_tqdm=False)]


def main() -> None:
    ray.init(address='local', num_cpus=2, include_dashboard=False, log_to_driver=False)
    generator = Generator.remote(sys.argv[1])
    ray.get(generator.rollout.remote(['warm up']))
    found = [
        trainer.step(lambda n=n: ray.get(generator.rollout.remote([f'number {n}', 'one two', 'plus'])))
        for n in range(2)
    ]
    print(json.dumps(found), flush=True)
    time.sleep(2)  # Ray ends its workers at once, and vLLM's own exporter sends twice a second
    ray.shutdown()


if __name__ == '__main__':
    main()
