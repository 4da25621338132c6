# SPDX-License-Identifier: Apache-2.0
"""A proposed rule: what it says, and the comments that say why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Value: TypeAlias = 'str | bool | list[str] | dict[str, Value]'

SURE = 'sure'
LIKELY = 'likely'
GUESS = 'guess'


@dataclass(eq=False)
class Proposed:
    """A rule.

    Attributes:
        section: The heading it stands under.
        sureness: One of the three words above.
        why: What the comment says, a line each; the first says what it is.
        fields: Its keys and values, in order.
        notes: Comments behind values, by label or metric key.
        remarks: Comments at the end of its labels or metrics.
    """

    section: str
    sureness: str
    why: list[str]
    fields: dict[str, Value]
    notes: dict[str, str] = field(default_factory=dict[str, str])
    remarks: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Proposal:
    """A proposed rule file.

    Attributes:
        framework: Its name.
        when: The package it needs, if it needs one.
        groups: The groups it declares, each with its bucket.
        rules: The rules, in the order they are written in.
        actors: The Ray actors of the code base, a line each.
        left_out: What was found and is not proposed, a line each.
        paths: What was read, as given.
        files: How many files that were.
    """

    framework: str
    when: str | None
    groups: dict[str, str | None]
    rules: list[Proposed]
    actors: list[str]
    left_out: list[str]
    paths: list[str]
    files: int
