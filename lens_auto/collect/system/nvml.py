# SPDX-License-Identifier: Apache-2.0
"""Figures of NVIDIA GPUs from the driver's own library, where there is one.

NVML is asked by the launcher, which has no CUDA context: nothing is allocated on a GPU. A figure that a GPU does not
have (utilisation of one that is cut into MIG instances, say) is left out.
"""

from __future__ import annotations

import ctypes

from lens_auto.collect.system.measurement import Measurement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LIBRARY = 'libnvidia-ml.so.1'
_LONGEST = 96  # bytes of a name or a UUID with the zero at its end: NVML_DEVICE_UUID_V2_BUFFER_SIZE
_ON_THE_DIE = 0  # NVML_TEMPERATURE_GPU


class _Utilization(ctypes.Structure):
    _fields_ = (('gpu', ctypes.c_uint), ('memory', ctypes.c_uint))  # per cent of the last sampling period


class _Memory(ctypes.Structure):
    _fields_ = (('total', ctypes.c_ulonglong), ('free', ctypes.c_ulonglong), ('used', ctypes.c_ulonglong))


class _Gpu:
    __slots__ = ('energy', 'handle', 'labels')

    def __init__(self, handle: ctypes.c_void_p, labels: Mapping[str, str]) -> None:
        self.handle = handle
        self.labels = labels
        self.energy: int | None = None


class Nvml:
    """The GPUs of this node that the run may use."""

    def __init__(self, visible: str | None, library: str = LIBRARY) -> None:
        """Find them.

        Args:
            visible: CUDA_VISIBLE_DEVICES of the command, None where it is not set.
            library: The library's file.

        Raises:
            OSError: There is no such library, or it does not find a driver.
        """
        self._library = ctypes.CDLL(library)
        if self._call('nvmlInit_v2'):
            raise OSError('the library finds no driver')
        count = ctypes.c_uint()
        self._call('nvmlDeviceGetCount_v2', ctypes.byref(count))
        self._gpus = [gpu for index in range(count.value) if (gpu := self._gpu(index, visible)) is not None]

    def __len__(self) -> int:
        return len(self._gpus)

    def read(self) -> Iterator[Measurement]:
        """What each GPU is doing."""
        for gpu in self._gpus:
            yield from self._figures(gpu)

    def _figures(self, gpu: _Gpu) -> Iterator[Measurement]:
        labels = gpu.labels
        use = _Utilization()
        if not self._call('nvmlDeviceGetUtilizationRates', gpu.handle, ctypes.byref(use)):
            yield Measurement('hw.gpu.utilization', 'gauge', '1', use.gpu / 100, labels)
        memory = _Memory()
        if not self._call('nvmlDeviceGetMemoryInfo', gpu.handle, ctypes.byref(memory)):
            yield Measurement('hw.gpu.memory.usage', 'updowncounter', 'By', memory.used, labels)
            yield Measurement('hw.gpu.memory.limit', 'updowncounter', 'By', memory.total, labels)
        power = ctypes.c_uint()
        if not self._call('nvmlDeviceGetPowerUsage', gpu.handle, ctypes.byref(power)):
            yield Measurement('hw.power', 'gauge', 'W', power.value / 1000, labels)
        heat = ctypes.c_uint()
        if not self._call('nvmlDeviceGetTemperature', gpu.handle, _ON_THE_DIE, ctypes.byref(heat)):
            yield Measurement('hw.temperature', 'gauge', 'Cel', heat.value, labels)
        energy = ctypes.c_ulonglong()  # millijoules since the driver was loaded
        if not self._call('nvmlDeviceGetTotalEnergyConsumption', gpu.handle, ctypes.byref(energy)):
            if gpu.energy is not None:
                yield Measurement('hw.energy', 'counter', 'J', max(0, energy.value - gpu.energy) / 1000, labels)
            gpu.energy = energy.value

    def _gpu(self, index: int, visible: str | None) -> _Gpu | None:
        handle = ctypes.c_void_p()
        if self._call('nvmlDeviceGetHandleByIndex_v2', index, ctypes.byref(handle)):
            return None
        uuid, model = self._text('nvmlDeviceGetUUID', handle), self._text('nvmlDeviceGetName', handle)
        if visible is not None and not _listed(index, uuid, visible):
            return None
        labels = {'hw.id': uuid or str(index), 'hw.name': f'gpu {index}', 'hw.type': 'gpu', 'hw.vendor': 'NVIDIA'}
        return _Gpu(handle, {**labels, 'hw.model': model} if model else labels)

    def _text(self, function: str, handle: ctypes.c_void_p) -> str:
        buffer = ctypes.create_string_buffer(_LONGEST)
        failed = self._call(function, handle, buffer, ctypes.c_uint(_LONGEST))
        return '' if failed else buffer.value.decode('utf-8', 'replace')

    def _call(self, function: str, *arguments: object) -> int:
        """NVML's status, 0 for success; that of a function which this driver's library lacks is failure."""
        try:
            found = getattr(self._library, function)
        except AttributeError:
            return -1
        return int(found(*arguments))


def _listed(index: int, uuid: str, visible: str) -> bool:
    """Whether CUDA_VISIBLE_DEVICES names a GPU: by number, or by the beginning of its UUID."""
    for one in visible.split(','):
        name = one.strip()
        if name.startswith('-') or not name:
            return False  # CUDA stops at the first that is none
        if name == str(index) or (name.startswith('GPU-') and uuid.startswith(name)):
            return True
    return False
