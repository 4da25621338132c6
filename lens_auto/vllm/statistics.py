# SPDX-License-Identifier: Apache-2.0
"""vLLM's statistics, switched on where a span group or a setting asks for figures that only they have."""

from __future__ import annotations

import sys

from lens_auto.wrap.site import Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ATTRIBUTE = 'lens.vllm.statistics'
_LOGGER = 'vllm.engine.arg_utils'


class StatisticsSite(Site):
    """`EngineArgs.create_engine_config(self, ...)`: the options of an engine are about to be read."""

    __slots__ = ('_group',)

    def __init__(self, *args: Any):
        """See `Site`."""
        super().__init__(*args)
        self._group: str = args[0]['group'] or ''

    def told(self, args: tuple[Any, ...]) -> None:
        """The options are complete.

        Args:
            args: The options, and the rest.
        """
        self.figures.calls += 1
        if switch_on(args[0], f'span group {self._group}'):
            self._recorder.resource({_ATTRIBUTE: f'switched on for {self._group}'})


def switch_on(options: Any, why: str) -> bool:
    """Let an engine keep statistics, and say so once in its log; False where it does anyway.

    Args:
        options: vLLM's `EngineArgs`.
        why: What asks for them.
    """
    if not options.disable_log_stats:
        return False
    options.disable_log_stats = False
    logging: Any = sys.modules.get('logging')
    if logging is not None:
        logging.getLogger(_LOGGER).info('lens-instrument: statistics are switched on (asked for by %s)', why)
    return True
