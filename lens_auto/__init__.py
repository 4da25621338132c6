# SPDX-License-Identifier: Apache-2.0
"""lens-auto: telemetry for RL post-training runs, with no code change."""

__version__ = '0.1.0'
