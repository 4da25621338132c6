# SPDX-License-Identifier: Apache-2.0
"""Whether OpenTelemetry says of what is current that it is not to be traced, as exporters say of their own requests."""

from __future__ import annotations

from lens_auto.record.foreign import foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from lens_auto.record.fault import Faults

CONTEXT = 'opentelemetry.context'
# The API's own names for its keys, and the key that instrumentors used before there were these.
_NAMES = ('_SUPPRESS_INSTRUMENTATION_KEY', '_SUPPRESS_HTTP_INSTRUMENTATION_KEY')
_PLAIN = 'suppress_instrumentation'


def suppressed(modules: dict[str, ModuleType], key: str, faults: Faults) -> bool:
    """True where a request is to leave no span and to carry no header of ours.

    Args:
        modules: `sys.modules`; OpenTelemetry is not imported for this.
        key: The rule's key, for a fault.
        faults: Where an error of ours is counted.
    """
    context = modules.get(CONTEXT)
    if context is None:
        return False
    given: dict[str, Any] = context.__dict__
    try:
        value = given['get_value']
        return bool(value(_PLAIN)) or any(name in given and bool(value(given[name])) for name in _NAMES)
    except KeyError:
        return False  # in the middle of being imported
    except Exception as error:
        if foreign(error):
            raise
        faults.take('http', key, error)
        return False
