# SPDX-License-Identifier: Apache-2.0
"""A small program with NeMo-RL's module paths, signatures and control flow, run as a user would run NeMo-RL.

`nemo_rl_like/` is ours, written for these tests; `nemo_rl_checkout.py` runs the tests of a real checkout. One Ray
session is 5 to 20 seconds, so what needs one shares it; the rest runs with workers that are objects of the program.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.ray_program import RayPlace
from tests.helpers.run import Place

PROGRAM = Path(__file__).parent / 'nemo_rl_like'


def copied(place: Place) -> Place:
    """The place, with the program in its working directory."""
    shutil.copytree(PROGRAM, place.cwd, dirs_exist_ok=True, ignore=shutil.ignore_patterns('__pycache__', 'logs'))
    return place


@pytest.fixture
def nemo_rl(tmp_path: Path) -> Place:
    """A working directory with the program in it."""
    pytest.importorskip('ray')
    return copied(Place(tmp_path))


@pytest.fixture(scope='module')
def nemo_rl_on_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayPlace]:
    """The same, for programs that start Ray."""
    pytest.importorskip('ray')
    place = RayPlace(tmp_path_factory.mktemp('ray'))
    copied(place)
    yield place
    place.close()
