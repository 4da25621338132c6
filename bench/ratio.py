# SPDX-License-Identifier: Apache-2.0
"""Ratios of two things measured alternately in one run: on a shared machine only these mean anything."""

from __future__ import annotations

from statistics import median


def line(what: str, ours: list[float], theirs: list[float], unit: str = 'us') -> str:
    """One line of a table: median ratio with its range, and both medians.

    Args:
        what: What was measured.
        ours: Our figures, one a round.
        theirs: What they are compared with, round by round.
        unit: Of both.
    """
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    spread = f'{min(ratios):.3f}-{max(ratios):.3f}'
    return (
        f'{what:<58} {median(ratios):6.3f}  ({spread})   {median(ours):.4g} {unit} against {median(theirs):.4g} {unit}'
    )
