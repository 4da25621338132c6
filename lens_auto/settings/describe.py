# SPDX-License-Identifier: Apache-2.0
"""The settings of a run for a reader: one line a field, with the place each value came from."""

from __future__ import annotations

from lens_auto.settings.fields import BY_NAME, FIELDS
from lens_auto.settings.source import DEFAULT, ENVIRONMENT, FLAG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lens_auto.settings.fields import Value
    from lens_auto.settings.resolve import Resolved
    from lens_auto.settings.source import Source


def describe(resolved: Resolved) -> list[str]:
    """Lines in three columns: field, value, source."""
    shown = [(field.name, spelled(resolved.value(field.name)), str(resolved.source(field.name))) for field in FIELDS]
    names = max(len(name) for name, _, _ in shown)
    values = max(len(value) for _, value, _ in shown)
    return [f'{name:{names}}  {value:{values}}  {source}' for name, value, source in shown]


def changed(resolved: Resolved) -> str:
    """The settings that are not their defaults, with their sources, in a line without secrets."""
    names = resolved.changed
    sources = [resolved.source(name) for name in names]
    line = ', '.join(
        f'{name}={spelled(resolved.value(name))} ({source.name})' for name, source in zip(names, sources, strict=True)
    )
    # Nothing else holds words that were not checked; redacting costs the start of a command a millisecond.
    if any(BY_NAME[name].kind == 'str' for name in names) or not all(map(_is_known, sources)):
        from lens_auto.settings import redact

        return redact.text(line)
    return line


def _is_known(source: Source) -> bool:
    return source.kind in (FLAG, ENVIRONMENT, DEFAULT)


def spelled(value: Value) -> str:
    """The value as YAML spells it."""
    if isinstance(value, bool):
        return 'true' if value else 'false'
    return str(value)
