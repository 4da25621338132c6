# SPDX-License-Identifier: Apache-2.0
"""An actor around a server of SGLang."""

from __future__ import annotations

import ray


@ray.remote
class SGLangGenerationWorker:
    def init(self, dist_init_addr: str, port: int, nccl_port: int, host: str, router_ip: str, router_port: int) -> None:
        self.server = (host, port)

    def update_weights_from_tensor(
        self,
        serialized_named_tensors: list[str],
        load_format: str | None = None,
        flush_cache: bool = False,
        weight_version: str | None = None,
    ) -> bool:
        return True

    def release_memory_occupation(self, tags: list[str] | None = None) -> None:
        pass

    def resume_memory_occupation(self, tags: list[str] | None = None) -> None:
        pass
