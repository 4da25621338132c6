# SPDX-License-Identifier: Apache-2.0
"""What a rule did in a process, in numbers."""

from __future__ import annotations

UNLIMITED = -1


class Figures:
    """What a rule did in this process, over all its sites.

    Attributes:
        calls: Calls seen.
        spans: Spans or points recorded.
        errors: Spans that ended with an error.
        nanoseconds: Time inside the spans.
        over: Calls not recorded because the nesting was too deep, or (a timer's) the budget spent.
        spent: Calls not counted among these, because the budget was spent.
        unread: Attributes left out (not there, on a device, of no recordable kind).
        filtered: Calls not recorded because of where they came from (`only_from`), of their label, or because none of
            the metrics logged is listed.
        seen: The rule's label patterns and metric keys that have occurred.
        left: Spans the budget still allows, UNLIMITED without one.
    """

    __slots__ = ('calls', 'errors', 'filtered', 'left', 'nanoseconds', 'over', 'seen', 'spans', 'spent', 'unread')

    def __init__(self, budget: int | None):
        """See the class.

        Args:
            budget: Spans this process may record for the rule, or None.
        """
        self.forget()
        self.seen: set[str] = set()
        self.left = UNLIMITED if budget is None else budget

    def forget(self) -> None:
        """Count from zero: in a forked child, as the parent tells its own."""
        self.calls = self.spans = self.errors = self.nanoseconds = 0
        self.over = self.unread = self.filtered = self.spent = 0

    def row(self) -> list[int]:
        """As journalled: calls, spans, errors, ns, over budget, unread, filtered."""
        calls, over = self.calls + self.spent, self.over + self.spent
        return [calls, self.spans, self.errors, self.nanoseconds, over, self.unread, self.filtered]
