# SPDX-License-Identifier: Apache-2.0
"""The settings as `LENS_*` variables, and back: the launcher writes them, every process of the run reads them."""

from __future__ import annotations

from lens_auto.settings.fields import BY_NAME, FIELDS, LENS, by_exporter, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from lens_auto.settings.fields import Value
    from lens_auto.settings.resolve import Resolved

PROVISIONAL = LENS + 'PROVISIONAL'


def environment(resolved: Resolved) -> dict[str, str]:
    """The variables every process of the run gets."""
    variables = {LENS + field.suffix: text(resolved.value(field.name)) for field in FIELDS}
    variables[PROVISIONAL] = ','.join(resolved.provisional)
    return variables


def from_environment(environ: Mapping[str, str]) -> dict[str, Value]:
    """The settings of this process. A value that no launcher wrote is the default: a traced process refuses nothing."""
    values: dict[str, Value] = {}
    for field in FIELDS:
        values[field.name] = field.default
        value = environ.get(LENS + field.suffix)
        if value:
            try:
                values[field.name] = field.parse(value)
            except (ValueError, OverflowError):
                continue
    return values


def provisional(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The fields that a `telemetry:` block on the program's config object still decides."""
    return tuple(name for name in environ.get(PROVISIONAL, '').split(',') if name)


def override(
    values: Mapping[str, Value], provisional: Collection[str], block: object, faults: list[str] | None = None
) -> dict[str, Value]:
    """The settings once the program has built its config.

    Args:
        values: The settings so far.
        provisional: The fields whose source is weaker than a config object.
        block: The object's `telemetry:` block: a dict, or an object with the fields as attributes.
        faults: Gets a line for each value that its field does not take; that value is left out.
    """
    changed = dict(values)
    named: set[str] = set()
    for name in provisional:
        field = BY_NAME.get(name)
        value = _member(block, name)
        if field is None or value is None or value == '':
            continue
        try:
            changed[name] = field.parse(value)
        except (ValueError, OverflowError):
            if faults is not None:
                # The value itself stays out: whatever the program put there is not ours to record.
                faults.append(f'telemetry.{name} takes {field.valid}; a {type(value).__name__} there was ignored')
            continue
        named.add(name)
    before, after = values.get('exporter'), changed.get('exporter')
    if before is not None and after is not None and before != after:
        for name in ('span_groups', 'export_strategy'):
            # Still the default of the exporter that was: it would have been another with this one.
            if name in provisional and name not in named and changed.get(name) == by_exporter(name, before):
                changed[name] = by_exporter(name, after)
    return changed


def enabled(block: object) -> bool | None:
    """Whether a config object's `telemetry:` block says that telemetry is on; None where it says nothing of it.

    Args:
        block: See `override`.
    """
    try:
        return bool(BY_NAME['enabled'].parse(_member(block, 'enabled')))
    except (ValueError, OverflowError):
        return None


def _member(block: object, name: str) -> object:
    if isinstance(block, dict):
        return block.get(name)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return getattr(block, name, None)
