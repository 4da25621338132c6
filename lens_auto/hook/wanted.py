# SPDX-License-Identifier: Apache-2.0
"""The targets of a rule: which names in which modules, and what each is to the rule."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


SOURCE_KINDS = ('loop', 'block', 'call')
"""As in `rules.model`, which no traced process loads."""
MAIN = '__main__'


class Wanted:
    """One target of one rule.

    Attributes:
        rule: The compiled rule.
        part: What the target is to the rule: '' (function, logger, resource), 'with', 'start', 'stop' or 'lap'; for a
            `ray` rule, what it is on.
        qualname: The name inside the module.
        keys: Runtime keys of the sites in place for it; empty while it is not patched.
        target: As a rule file spells it.
        is_place: It is found in the source, by a pattern.
        rewrites: It is applied by changing the source.
        places: In how many places the source was changed for it.
        reason: Why in none; None as long as nobody has looked.
    """

    __slots__ = ('is_place', 'keys', 'module', 'part', 'places', 'qualname', 'reason', 'rewrites', 'rule', 'target')

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
        self.target = f'{module}:{qualname}' if qualname else module
        self.is_place = rule['kind'] in SOURCE_KINDS
        self.rewrites = self.is_place or rule.get('apply') == 'rewrite'
        self.places = 0
        self.reason: str | None = None

    @property
    def first(self) -> str:
        """The name in the module that it begins with."""
        return self.qualname.partition('.')[0]

    def spelled(self) -> tuple[Any, ...]:
        """What the changed source depends on."""
        rule = self.rule
        return rule['key'], rule['kind'], self.qualname, rule.get('match'), rule.get('expect'), rule.get('force')

    def of_main(self) -> Wanted:
        """The same, in the module that this process runs."""
        found = Wanted(self.rule, self.part, MAIN, self.qualname)
        found.target = self.target
        return found


def targets(rule: dict[str, Any]) -> list[Wanted]:
    """All targets of a rule, in the order of the file.

    Args:
        rule: A compiled rule.
    """
    # What a `ray`, `http` or `vllm` rule names is one thing at several places, no alternatives: each is a part.
    part = rule['on'] if rule['kind'] in ('ray', 'http', 'vllm') else ''
    found = [Wanted(rule, part, module, name) for module, name in rule.get('targets', ())]
    found += [Wanted(rule, 'with', module, name) for module, name in rule.get('with', ())]
    for module, start, stop in rule.get('pair', ()):
        found += [Wanted(rule, 'start', module, start), Wanted(rule, 'stop', module, stop)]
    for part in ('start', 'stop', 'lap'):
        found += [Wanted(rule, part, module, name) for module, name in rule.get(part, ())]
    return found
