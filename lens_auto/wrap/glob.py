# SPDX-License-Identifier: Apache-2.0
"""Glob patterns with `*` and `?`, matched by hand: `fnmatch` would import `re` into every worker."""

from __future__ import annotations


def matches(pattern: str, text: str) -> bool:
    """True when a whole text matches a pattern; `*` is any run of characters (dots and slashes too), `?` any one.

    Args:
        pattern: The pattern.
        text: The text.
    """
    at = here = 0
    star = back = -1
    while here < len(text):
        if at < len(pattern) and pattern[at] in ('?', text[here]) and pattern[at] != '*':
            at += 1
            here += 1
        elif at < len(pattern) and pattern[at] == '*':
            star, back = at, here
            at += 1
        elif star >= 0:
            # Let the last star take one character more, and try again from there: never exponential.
            back += 1
            at, here = star + 1, back
        else:
            return False
    return all(c == '*' for c in pattern[at:])
