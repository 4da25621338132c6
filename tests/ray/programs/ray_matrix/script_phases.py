# SPDX-License-Identifier: Apache-2.0
"""The cells of functions and classes that the script itself defines: what the driver does."""

import sys

import ray

from ray_matrix.given import PATIENCE

script = sys.modules['__main__']


def phase_script_task(folder):
    return ray.get(script.script_task.remote(1, key=2), timeout=PATIENCE)


def phase_script_actor(folder):
    return ray.get((_held := script.ScriptActor.remote(1, key=2)).work.remote(1, key=2), timeout=PATIENCE)


def phase_script_late_actor(folder):
    return ray.get((_held := ray.remote(script.ScriptLate).remote()).work.remote(1, key=2), timeout=PATIENCE)
