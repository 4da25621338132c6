# SPDX-License-Identifier: Apache-2.0
"""The settings of a run for a reader: one line a field, with the place each value came from."""

from __future__ import annotations

from lens_auto.settings.fields import FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lens_auto.settings.fields import Value
    from lens_auto.settings.resolve import Resolved


def describe(resolved: Resolved) -> list[str]:
    """Lines in three columns: field, value, source."""
    shown = [(field.name, spelled(resolved.value(field.name)), str(resolved.source(field.name))) for field in FIELDS]
    names = max(len(name) for name, _, _ in shown)
    values = max(len(value) for _, value, _ in shown)
    return [f'{name:{names}}  {value:{values}}  {source}' for name, value, source in shown]


def spelled(value: Value) -> str:
    """The value as YAML spells it."""
    if isinstance(value, bool):
        return 'true' if value else 'false'
    return str(value)
