# SPDX-License-Identifier: Apache-2.0
"""The driver's library, stood in for by one that the test compiles: same functions, same structures."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lens_auto.collect.system.nvml import Nvml


@pytest.fixture(scope='module')
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which('cc') or shutil.which('gcc')
    if compiler is None:
        pytest.skip('no C compiler')
    built = tmp_path_factory.mktemp('nvml') / 'libnvidia-ml.so.1'
    source = Path(__file__).with_name('nvml_stub.c')
    subprocess.run([compiler, '-shared', '-fPIC', '-o', str(built), str(source)], check=True)
    return str(built)


def figures(gpus: Nvml) -> dict[tuple[str, str], float]:
    return {(found.name, (found.labels or {})['hw.name']): found.value for found in gpus.read()}


def test_each_gpu_under_opentelemetrys_names(library: str) -> None:
    gpus = Nvml(None, library)
    first = figures(gpus)
    assert first == {
        ('hw.gpu.utilization', 'gpu 0'): 0.75,
        ('hw.gpu.memory.usage', 'gpu 0'): 1 << 30,
        ('hw.gpu.memory.limit', 'gpu 0'): 80 << 30,
        ('hw.power', 'gpu 0'): 350.5,
        ('hw.temperature', 'gpu 0'): 61,
        ('hw.gpu.utilization', 'gpu 1'): 0.2,
        ('hw.gpu.memory.usage', 'gpu 1'): 2 << 30,
        ('hw.gpu.memory.limit', 'gpu 1'): 80 << 30,
        ('hw.temperature', 'gpu 1'): 61,
    }
    # Energy is a sum since the driver was loaded: from the second time on, what came in between.
    again = figures(gpus)
    assert again.pop(('hw.energy', 'gpu 0')) == pytest.approx(1.4)
    assert again == first


def test_its_labels_tell_it_from_all_others(library: str) -> None:
    labels = next(Nvml(None, library).read()).labels
    assert labels == {
        'hw.id': 'GPU-00',
        'hw.name': 'gpu 0',
        'hw.type': 'gpu',
        'hw.vendor': 'NVIDIA',
        'hw.model': 'NVIDIA Test',
    }


@pytest.mark.parametrize(
    ('visible', 'named'),
    [
        ('', set[str]()),
        ('-1', set[str]()),
        ('1', {'gpu 1'}),
        ('1,0', {'gpu 0', 'gpu 1'}),
        ('GPU-1', {'gpu 1'}),
        ('GPU-00', {'gpu 0'}),
        ('1,-1,0', {'gpu 1'}),
    ],
)
def test_only_gpus_that_the_run_may_use(library: str, visible: str, named: set[str]) -> None:
    gpus = Nvml(visible, library)
    assert {gpu for _, gpu in figures(gpus)} == named
    assert len(gpus) == len(named)


def test_without_a_driver_there_are_none(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        Nvml(None, str(tmp_path / 'libnvidia-ml.so.1'))
