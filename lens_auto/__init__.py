# SPDX-License-Identifier: Apache-2.0
"""lens-auto: telemetry for RL post-training runs, with no code change.

What is imported here is the public API; everything else is private.
"""

from lens_auto.api import event, metric, set_attribute, span, trace

__all__ = ['event', 'metric', 'set_attribute', 'span', 'trace']
__version__ = '0.1.0'
