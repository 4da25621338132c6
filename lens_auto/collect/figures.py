# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """A count of things.

    Args:
        count: How many.
        noun: What one of them is called.
    """
    if count == 1:
        return f'1 {noun}'
    return f'{number(count)} {noun}{"es" if noun.endswith("s") else "s"}'


def number(count: int) -> str:
    """A count with thousands apart.

    Args:
        count: The number.
    """
    return f'{count:,}'


def value(item: float) -> str:
    """A metric's value in four digits.

    Args:
        item: The number.
    """
    if abs(item) < 1e15 and item == int(item):  # false for NaN
        return f'{int(item):,}'
    return f'{item:.4g}'


def size(count: float) -> str:
    """Bytes in three digits and the unit that suits them.

    Args:
        count: How many.
    """
    for unit in ('B', 'kB', 'MB', 'GB'):
        if count < 999.5:
            return f'{count:.3g} {unit}'
        count /= 1000
    return f'{count:.3g} TB'


def percent(part: float) -> str:
    """A share.

    Args:
        part: 1 is all.
    """
    return f'{100 * part:.1f} %'


def time(ns: float) -> str:
    """A duration in three or four digits and the unit that suits it.

    Args:
        ns: Nanoseconds.
    """
    seconds = ns / 1e9
    # Rounded, not cut: what is a minute and 0.9 s, told as a minute, would be wrong by more than a hundredth.
    if seconds >= 3599.5:
        minutes = round(seconds / 60)
        return f'{minutes // 60} h {minutes % 60:02d} m'
    if seconds >= 60:
        whole = round(seconds)
        return f'{whole // 60} m {whole % 60:02d} s'
    for limit, scale, unit in ((1.0, 1.0, 's'), (1e-3, 1e3, 'ms'), (1e-6, 1e6, 'us')):
        if seconds >= limit:
            scaled = seconds * scale
            return (
                f'{scaled:.2f} {unit}'
                if scaled < 10
                else f'{scaled:.1f} {unit}'
                if scaled < 100
                else f'{scaled:.0f} {unit}'
            )
    return f'{ns:.0f} ns'


def shortened(text: str, most: int) -> str:
    """A text cut at the end of a word, where it is too long.

    Args:
        text: One line.
        most: Characters.
    """
    if len(text) <= most:
        return text
    place = text.rfind(' ', most // 2, most)
    return text[: place if place > 0 else most - 1].rstrip(' ,;:') + '…'
