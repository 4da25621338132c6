# SPDX-License-Identifier: Apache-2.0
"""What all workers of a policy can do."""

from __future__ import annotations

from typing import Any


class AbstractPolicyWorker:
    def get_logprobs(self, *, data: Any, micro_batch_size: int | None = None) -> Any:
        raise NotImplementedError

    def get_reference_policy_logprobs(self, *, data: Any, micro_batch_size: int | None = None) -> Any:
        """The same with the weights of the reference."""
        return self.get_logprobs(data=data, micro_batch_size=micro_batch_size)

    def shutdown(self) -> bool:
        return True
