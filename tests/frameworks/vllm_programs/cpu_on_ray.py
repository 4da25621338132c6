# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false
"""Lets vLLM's executor on Ray run on CPUs: Ray is told of GPUs that do not exist, and vLLM to ask for them.

vLLM itself refuses: "current platform cpu does not support ray".
"""

from __future__ import annotations


def allow() -> None:
    from vllm.platforms.cpu import CpuPlatform

    CpuPlatform.ray_device_key = 'GPU'
