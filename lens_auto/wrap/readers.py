# SPDX-License-Identifier: Apache-2.0
"""The name and attributes of a rule's spans, compiled for one function."""

from __future__ import annotations

from lens_auto.wrap.expression import Scope, Unreadable, reader, scalar, text
from lens_auto.wrap.trees import constant, reads_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.wrap.code import Signature
    from lens_auto.wrap.expression import Reader, Tree


class Readers:
    """The name and attributes of a span, as closures over one function's parameters.

    Attributes:
        name: The span's name where it is always the same, else None.
        name_of: Reads the name.
        plain: Where the name is always the same and every attribute is an argument as it is: names with indices. No
            scope is made then, which is half the cost of reading. None otherwise.
        early: Attributes read when the span opens.
        late: Attributes read from the result, when it ends.
        keeps: True when some of these read arguments too, which then live until the span ends.
        fixed: Attributes that are always the same, or None.
        absent: What cannot be read from this function (a parameter it does not have), a line each; the rest is.
        by_group: The bucket is the group's, so that a span around this one may give it another.
        frame: True when some reader looks at the caller's frame.
    """

    __slots__ = ('absent', 'by_group', 'early', 'fixed', 'frame', 'keeps', 'late', 'name', 'name_of', 'plain')

    def __init__(
        self,
        rule: dict[str, Any],
        group: str | None,
        bucket: str | None,
        signature: Signature | None,
        variables: dict[str, Any],
        captures: dict[str, tuple[str, Any]] | None = None,
    ):
        """See the class.

        Args:
            rule: The part of the plan that holds `name` and `attributes`.
            group: The rule's span group.
            bucket: Its goodput bucket.
            signature: The parameters of the function; None when there is none (a label's readers without arguments).
            variables: The rule file's `vars`.
            captures: Of a place in source, what the pattern captured there.
        """
        names = signature.names if signature is not None else ()
        extra = signature.extra if signature is not None else None
        tree: Tree = rule['name']
        self.name_of: Reader = reader(tree, names, variables, extra, captures)
        self.name = text(self.name_of(Scope(()))) if constant(tree) else None
        fixed: dict[str, Any] = {}
        if group is not None:
            fixed['lens.group'] = group
        if bucket is not None:
            fixed['rl.bucket'] = bucket
        self.by_group = bucket is not None and not rule['own_bucket'] and 'rl.bucket' not in rule['attributes']
        self.early: list[tuple[str, Reader]] = []
        self.late: list[tuple[str, Reader]] = []
        self.keeps = False
        trees = [tree]
        self.absent: list[str] = []
        for attribute, value in rule['attributes'].items():
            try:
                read = reader(value, names, variables, extra, captures)
            except Unreadable as problem:
                self.absent.append(f'attribute {attribute}: {problem}')
                continue
            if constant(value):
                fixed[attribute] = scalar(read(Scope(())))
                continue
            trees.append(value)
            if reads_from(value, 'result', variables):
                self.late.append((attribute, read))
                self.keeps |= reads_from(value, 'arg', variables) or reads_from(value, 'self', variables)
            else:
                self.early.append((attribute, read))
        self.fixed = fixed or None
        self.plain = _plain(rule['attributes'], names) if self.name is not None and not self.absent else None
        self.frame = any(reads_from(value, root, variables) for value in trees for root in ('frame', 'caller', 'match'))


def _plain(attributes: dict[str, Tree], names: tuple[str, ...]) -> tuple[tuple[str, int], ...] | None:
    read = [(attribute, tree) for attribute, tree in attributes.items() if not constant(tree)]
    if not all(tree[0] == 'arg' and tree[1] in names for _, tree in read):
        return None
    return tuple((attribute, names.index(tree[1])) for attribute, tree in read)
