# SPDX-License-Identifier: Apache-2.0
"""Where a value came from, how strong that place is, and the error that names it."""

from __future__ import annotations

from lens_auto.settings.fields import Field
from lens_auto.settings.nearest import nearest

FLAG = 'flag'
ENVIRONMENT = 'environment'
ARGUMENT = 'argument'
CONFIG = 'config'
TELEMETRY_FILE = 'telemetry file'
DEFAULT = 'default'

_STRENGTH = {FLAG: 6, ENVIRONMENT: 5, ARGUMENT: 4, CONFIG: 2, TELEMETRY_FILE: 1, DEFAULT: 0}

# A `telemetry:` block read off the program's config object when that is built: what the files became, so it beats our
# own reading of them; an override in the program's arguments is the user's last word on it.
CONFIG_OBJECT_STRENGTH = 3


class SettingError(Exception):
    """A setting the launcher refuses to start with; the text names the place, the fault and the way out."""


class Source:
    """Where a value came from.

    Attributes:
        kind: 'flag', 'environment', 'argument', 'config', 'telemetry file' or 'default'.
        where: The place as the user wrote it (`LENS_EXPORTER=otlp`, `grpo.yaml:12 telemetry.exporter`); the reason
            for a default.
        ours: The user said it to lens-auto itself; the vocabulary of the run's own telemetry is not.
    """

    __slots__ = ('kind', 'where', 'ours')

    def __init__(self, kind: str, where: str, ours: bool = False) -> None:
        self.kind = kind
        self.where = where
        self.ours = ours

    @property
    def strength(self) -> int:
        """How strong the source is; the strongest that names a field decides it."""
        return _STRENGTH[self.kind]

    @property
    def refuses(self) -> bool:
        """Whether a wrong value is an error: what the program reads too is the program's to refuse."""
        return self.kind not in (ARGUMENT, CONFIG)

    @property
    def name(self) -> str:
        """The place without the value: `LENS_EXPORTER`, `--set`, `grpo.yaml:12 telemetry.exporter`."""
        if self.kind == FLAG:
            return self.where.partition(' ')[0]
        return self.where if self.kind in (CONFIG, TELEMETRY_FILE, DEFAULT) else self.where.partition('=')[0]

    def __str__(self) -> str:
        if self.kind != DEFAULT:
            return self.where
        return f'default ({self.where})' if self.where else 'default'


def invalid(field: Field, value: object, where: str) -> SettingError:
    """The error for a value that a field does not take."""
    text = f'{field.name} cannot be `{value}`\n    from {where}\n    valid: {field.valid}'
    meant = nearest(value, field.choices) if isinstance(value, str) else None
    return SettingError(f'{text}\n    did you mean `{meant}`?' if meant else text)


def unknown(name: str, where: str, names: tuple[str, ...]) -> SettingError:
    """The error for a name that is no field."""
    meant = nearest(name, names)
    hint = f'did you mean `{meant}`?  ' if meant else ''
    return SettingError(f'`{name}` is not a setting\n    from {where}\n    {hint}Settings: {", ".join(names)}')
