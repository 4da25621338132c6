# SPDX-License-Identifier: Apache-2.0
"""Tests on a real Ray of this machine.

`LENS_TEST_RAY=2.40.0,2.48.0,newest` runs them on each of these, in venvs that are made once and kept under
`~/.cache/lens-auto-tests/` or $LENS_TEST_CACHE. `LENS_TEST_RAY_VENVS=DIR` uses `DIR/ray-<version>` where that exists.
Without any, Ray is that of the venv the tests run in.

One Ray session is 5 to 20 seconds: a program has many cells, and the fixtures that run one are shared by a module.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers.ray_program import RayPlace
from tests.helpers.ray_versions import OWN, python_with_ray, wanted

PROGRAMS = Path(__file__).parent / 'programs'


@pytest.fixture(scope='session', params=wanted(), ids=lambda version: f'ray-{version}')
def ray_python(request: pytest.FixtureRequest) -> str:
    """The interpreter of a venv with the Ray under test."""
    if request.param == OWN and importlib.util.find_spec('ray') is None:
        pytest.skip('ray is not installed in this venv')
    return python_with_ray(request.param)


@pytest.fixture(scope='module')
def new_place(ray_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., RayPlace]]:
    """Makes working directories with files of `programs/` in them; they are closed after the module."""
    made: list[RayPlace] = []

    def make(*programs: str) -> RayPlace:
        place = RayPlace(tmp_path_factory.mktemp('ray'), ray_python)
        made.append(place)
        for name in programs:
            source = PROGRAMS / name
            if source.is_dir():
                shutil.copytree(source, place.cwd / name, ignore=shutil.ignore_patterns('__pycache__'))
            else:
                shutil.copy(source, place.cwd / source.name)
        return place

    yield make
    for place in made:
        place.close()


@pytest.fixture
def place(new_place: Callable[..., RayPlace]) -> RayPlace:
    """An empty working directory of one test."""
    return new_place()
