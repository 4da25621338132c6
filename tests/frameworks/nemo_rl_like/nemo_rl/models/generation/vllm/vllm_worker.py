# SPDX-License-Identifier: Apache-2.0
"""A worker that generates: the class that does the work, and the actor made of it."""

from __future__ import annotations

from typing import Any

import ray


class BaseVllmGenerationWorker:
    def __init__(self, config: Any) -> None:
        self.cfg = config
        self._load_model()

    def _load_model(self) -> None:
        self.llm = object()

    def shutdown(self) -> bool:
        return True


class VllmGenerationWorkerImpl(BaseVllmGenerationWorker):
    def generate(self, data: Any, greedy: bool = False) -> dict[str, Any]:
        return {'generation_lengths': [3] * len(data['input_lengths'])}

    def generate_text(self, data: Any, greedy: bool = False) -> dict[str, Any]:
        return {'texts': ['x'] * len(data['input_lengths'])}

    def update_weights_via_ipc_zmq(self) -> bool:
        return True

    def update_weights_from_collective(self) -> bool:
        return True

    def nccl_reshard_refit(self) -> bool:
        return True

    def sleep(self) -> None:
        pass

    def wake_up(self, **kwargs: Any) -> None:
        pass


@ray.remote
class VllmGenerationWorker(VllmGenerationWorkerImpl):
    pass
