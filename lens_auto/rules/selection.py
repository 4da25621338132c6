# SPDX-License-Identifier: Apache-2.0
"""Which span groups a spec such as `per_step,generation` switches on.

Asked in every traced process, once, when it starts to record; the launcher asks first and refuses a spec nobody knows.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    File = Mapping[str, Any]


class UnknownGroup(ValueError):
    """A token of a spec is neither a group nor a preset of any rule file.

    Attributes:
        token: The token.
        groups: The known groups, sorted.
        presets: The known presets, sorted.
    """

    def __init__(self, token: str, groups: tuple[str, ...], presets: tuple[str, ...]) -> None:
        super().__init__(f'span group `{token}` is not known')
        self.token = token
        self.groups = groups
        self.presets = presets

    def nearest(self) -> str | None:
        """The known name that looks most like the token, if one does."""
        from difflib import get_close_matches

        return next(iter(get_close_matches(self.token, self.groups + self.presets, 1)), None)


def select(spec: str, file: File) -> frozenset[str]:
    """The groups that `spec` switches on in one rule file.

    Args:
        spec: Groups and presets, separated by commas; their union counts.
        file: A file of the plan.

    Raises:
        UnknownGroup: A token is neither a group nor a preset of this file.
    """
    return select_all(spec, (file,))[0]


def select_all(spec: str, files: Sequence[File]) -> tuple[frozenset[str], ...]:
    """The groups that `spec` switches on, file by file. A token must be known to at least one file.

    Raises:
        UnknownGroup: A token is neither a group nor a preset of any file.
    """
    known: Sequence[File] = files or (built_in(),)
    selected: list[set[str]] = [set() for _ in known]
    for part in spec.split(','):
        token = part.strip()
        if not token:
            continue
        found = False
        for file, on in zip(known, selected, strict=True):
            preset = file['presets'].get(token)
            if preset == '*':
                on.update(file['groups'])
            elif preset is not None:
                on.update(preset)
            elif token in file['groups']:
                on.add(token)
            else:
                continue
            found = True
        if not found:
            raise UnknownGroup(token, _names(known, 'groups'), _names(known, 'presets'))
    return tuple(frozenset(on) for on in selected[: len(files)])


def _names(files: Sequence[File], what: str) -> tuple[str, ...]:
    return tuple(sorted({name for file in files for name in file[what]}))


def built_in() -> File:
    """What a plan of no file at all knows."""
    # A plan of no file at all still refuses a misspelt group, as it would with files.
    from .registry import GROUPS, PRESETS

    return {'groups': GROUPS, 'presets': PRESETS}
