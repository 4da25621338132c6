# SPDX-License-Identifier: Apache-2.0
"""The targets of a rule: which names in which modules, and what each is to the rule."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Wanted:
    """One target of one rule.

    Attributes:
        rule: The compiled rule.
        part: What the target is to the rule: '' (function, logger, resource), 'with', 'start', 'stop' or 'lap'; for a
            `ray` rule, what it is on.
        qualname: The name inside the module.
        keys: Runtime keys of the sites in place for it; empty while it is not patched.
    """

    __slots__ = ('keys', 'module', 'part', 'qualname', 'rule')

    def __init__(self, rule: dict[str, Any], part: str, module: str, qualname: str):
        """See the class.

        Args:
            rule: See the class.
            part: See the class.
            qualname: See the class.
            module: The module that holds it.
        """
        self.rule = rule
        self.part = part
        self.module = module
        self.qualname = qualname
        self.keys: list[str] = []


def targets(rule: dict[str, Any]) -> list[Wanted]:
    """All targets of a rule, in the order of the file.

    Args:
        rule: A compiled rule.
    """
    # What a `ray` rule names is one thing at several places, no alternatives: each is a part of its own.
    part = rule['on'] if rule['kind'] == 'ray' else ''
    found = [Wanted(rule, part, module, name) for module, name in rule.get('targets', ())]
    found += [Wanted(rule, 'with', module, name) for module, name in rule.get('with', ())]
    for module, start, stop in rule.get('pair', ()):
        found += [Wanted(rule, 'start', module, start), Wanted(rule, 'stop', module, stop)]
    for part in ('start', 'stop', 'lap'):
        found += [Wanted(rule, part, module, name) for module, name in rule.get(part, ())]
    return found
