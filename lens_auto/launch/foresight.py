# SPDX-License-Identifier: Apache-2.0
"""What can be known of a run's disappointments before it starts, and would otherwise be learnt at its end."""

from __future__ import annotations

import os

from lens_auto.rules.finding import script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from lens_auto.settings.resolve import Resolved

_NEEDED = ('sdk', 'exporter')  # of the namespace package opentelemetry


def warnings(resolved: Resolved, modules: Collection[str], command: Sequence[str]) -> list[str]:
    """What the user would want to be told before a long run, a line each.

    Args:
        resolved: The settings.
        modules: The modules that rules name.
        command: The command and its arguments.
    """
    found: list[str] = []
    if resolved.value('exporter') == 'otlp' and not _sdk_is_here():
        found.append(
            'the OpenTelemetry SDK is not installed here: nothing is sent, all of it stays in the run folder\n'
            "    pip install 'lens-auto[otlp]'; later, lens-instrument --replay sends it"
        )
    file = script(command)
    name = os.path.basename(file or '')[:-3]
    if name and name in modules:
        found.append(
            f'{file} is the script itself: rules on the module `{name}` reach nothing in it\n'
            f'    write `{name}.py` for `{name}` there'
        )
    return found


def _sdk_is_here() -> bool:
    from importlib.machinery import PathFinder

    top = PathFinder.find_spec('opentelemetry')
    if top is None or top.submodule_search_locations is None:
        return False
    places = list(top.submodule_search_locations)
    return all(any(os.path.isdir(os.path.join(place, name)) for place in places) for name in _NEEDED)
