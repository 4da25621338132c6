# SPDX-License-Identifier: Apache-2.0
"""The program's own tracer provider, as far as it has set one; looked at, never set."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Takes every span without a parent for a trace of its own, and cannot do with parents it does not know.
_KEEPS_TO_ITSELF = 'mlflow.'


def is_set() -> bool:
    """Whether the program has set a global provider; asking the API could load one, by a variable."""
    return _global() is not None


def is_of_the_global_provider(thing: Any) -> bool:
    """Whether a tracer or a span of the SDK belongs to the provider the program has set, and may have other parents.

    A provider that a library keeps to itself has readers of its own, who know nothing of ours.

    Args:
        thing: A tracer or a span.
    """
    processor = getattr(_global(), '_active_span_processor', None)
    own = getattr(thing, 'span_processor', None) or getattr(thing, '_span_processor', None)
    if processor is None or own is not processor:
        return False
    return not any(type(each).__module__.startswith(_KEEPS_TO_ITSELF) for each in _parts(processor))


def _parts(processor: Any) -> tuple[Any, ...]:
    return getattr(processor, '_span_processors', ())


def _global() -> Any:
    return getattr(sys.modules.get('opentelemetry.trace'), '_TRACER_PROVIDER', None)
