# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks call: the same empty functions, bare, named by a rule, and wrapped by the peers."""


def recorded(a: int, b: float, c: str) -> None:
    """Named by a rule that reads all three."""


def outer(function: object, count: int) -> None:
    """Named by a rule; the calls inside it have a parent."""
    for _ in range(count):
        function(1, 2.0, 'three')  # type: ignore[operator]


def spent(a: int, b: float, c: str) -> None:
    """Named by a rule whose budget is 0."""


def off(a: int, b: float, c: str) -> None:
    """Named by a rule of a group that is off."""


def bare(a: int, b: float, c: str) -> None:
    """Named by no rule."""
