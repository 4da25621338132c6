# SPDX-License-Identifier: Apache-2.0
"""Plans of single rule files to the plan of a run, and what that hooks. Needs no YAML and no model."""

from __future__ import annotations

from .plan import FORMAT, OTEL_MODULES, RAY_MODULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any


def merge(plans: Sequence[dict[str, Any]], agent: str) -> dict[str, Any]:
    """The plan of several files.

    A rule that an earlier file of the same framework has word for word is left out: whoever copies a rule file to
    change one rule does not get every span twice.

    Args:
        plans: The plan of each file alone, that of the one that counts most first.
        agent: The agent's version.
    """
    files: list[dict[str, Any]] = []
    rules: list[dict[str, Any]] = []
    seen: set[str] = set()
    for index, plan in enumerate(plans):
        files += plan['files']
        for rule in plan['rules']:
            if rule['key'] not in seen:
                seen.add(rule['key'])
                rules.append({**rule, 'file': index})
    return {'format': FORMAT, 'agent': agent, 'files': files, 'rules': rules}


def modules(plan: dict[str, Any]) -> tuple[str, ...]:
    """The modules to hook: all that a target lies in, and those whose import tells us something of the process.

    A script (`train.py`) is none of them, see `scripts`.

    Args:
        plan: The plan.
    """
    named = (module for rule in plan['rules'] for module in target_modules(rule))
    found = {module for module in named if not module.endswith('.py')}
    return tuple(sorted({'torch', *RAY_MODULES, *OTEL_MODULES, *found}))


def scripts(plan: dict[str, Any]) -> tuple[str, ...]:
    """The scripts that rules name, by the ends of their paths.

    Args:
        plan: The plan.
    """
    named = {module for rule in plan['rules'] for module in target_modules(rule)}
    return tuple(sorted(module for module in named if module.endswith('.py')))


def target_modules(rule: dict[str, Any]) -> Iterable[str]:
    """The modules of one rule of a plan.

    Args:
        rule: The rule.
    """
    for key in ('targets', 'with', 'pair', 'start', 'stop', 'lap'):
        for target in rule.get(key, ()):
            yield target[0]
