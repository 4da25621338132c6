# SPDX-License-Identifier: Apache-2.0
"""What the operating system and the GPUs' driver say of a run's processes and their node, asked from outside.

Nothing here runs in a traced process. `sampler` asks at intervals, in a thread of the launcher's; `procfs` and `nvml`
know where to ask. Names, units and labels are those of OpenTelemetry's conventions for processes, systems and hardware.
"""
