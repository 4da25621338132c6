# SPDX-License-Identifier: Apache-2.0
"""A trainer of a few dozen lines without torch, for tests that start many processes; its rules lie beside it."""

from __future__ import annotations

TRAINER = """\
import contextlib
import os
import sys


class Config:
    def __init__(self, telemetry=None, model="tiny"):
        self.algorithm = "ppo"
        self.model = model
        self.telemetry = telemetry or {}


class Timer:
    def start(self, label):
        pass

    def stop(self, label):
        pass

    @contextlib.contextmanager
    def time(self, label):
        self.start(label)
        try:
            yield
        finally:
            self.stop(label)


class Logger:
    def log_metrics(self, metrics, step):
        print("step", step, "reward", metrics["reward"], flush=True)


def score(step, prompt="a prompt"):
    return step / 10


def fit(config, steps, each=None):
    timer, logger = Timer(), Logger()
    for step in range(1, steps + 1):
        with timer.time("step"):
            with timer.time("rollout"):
                reward = score(step)
            timer.start("update")
            if each is not None:
                each(step)
            timer.stop("update")
        logger.log_metrics({"reward": reward, "tokens": 8}, step)
    return reward
"""

TRAIN = """\
import sys

import trainer

trainer.fit(trainer.Config(), int(sys.argv[1]) if len(sys.argv) > 1 else 3)
"""

RULES = """\
framework: small_trainer
when: trainer
rules:
- kind: function
  target: trainer:fit
  group: job
  name: job
- kind: timer
  with: trainer:Timer.time
  pair: trainer:Timer.start/stop
  labels:
    step: {group: step, name: step, root: true, attributes: {number: frame.step}}
    rollout: {group: rollout, name: rollout}
    update: {group: policy_update, name: update}
- kind: function
  target: trainer:score
  group: reward
  name: score
  attributes: {number: arg.step}
- kind: logger
  target: trainer:Logger.log_metrics
  metrics:
    reward: {name: reward, instrument: gauge}
    tokens: {name: tokens, instrument: counter}
- kind: resource
  target: trainer:Config.__init__
  attributes: {rl.algorithm: self.algorithm}
  settings: self.telemetry
"""

FILES = {'trainer.py': TRAINER, 'train.py': TRAIN, 'lens.yaml': RULES}
