# SPDX-License-Identifier: Apache-2.0
"""A driver whose actors, tasks and training loop are all in the script, as slime's and SkyRL's examples are."""

import json
import sys

import ray


@ray.remote
class Trainer:
    def __init__(self, scale):
        self.scale = scale

    def train(self, batch):
        loss = 0
        for token in batch:
            loss += token * self.scale
        return loss


@ray.remote
def generate(prompts):
    out = []
    for prompt in range(prompts):
        out.append(prompt)
    return out


class Late:
    """Made remote by a call, long after its definition."""

    def score(self, batch):
        for each in batch:
            yield_value = each
        return yield_value


def reward(batch):
    return len(batch)


def main():
    ray.init(num_cpus=2, logging_level=40, log_to_driver=False)
    trainer = Trainer.remote(2)
    judge = ray.remote(Late).remote()
    for rollout_id in range(2):
        batch = ray.get(generate.remote(2))
        loss = ray.get(trainer.train.remote(batch))
        score = ray.get(judge.score.remote(batch))
        print(json.dumps({'rollout': rollout_id, 'loss': loss, 'reward': reward(batch), 'score': score}), flush=True)
    ray.shutdown()


main()
sys.exit(5)
