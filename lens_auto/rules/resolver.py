# SPDX-License-Identifier: Apache-2.0
"""Whether the rules of a plan fit an installed environment, told from its source: nothing of it is imported or run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from . import matching
from .expression import Tree, walk
from .model import SOURCE_KINDS
from .source_tree import SourceTree
from .static_names import Found, StaticNames
from .target import is_script
from .version_range import contains

MATCHED = 'matched'
MOVED = 'moved'
MISSING = 'missing'
AMBIGUOUS = 'ambiguous'
SIGNATURE = 'signature changed'
UNCHECKED = 'not checkable'
NOT_INSTALLED = 'not installed'
NOT_ACTIVE = 'not active'

DRIFT = (MISSING, MOVED, AMBIGUOUS, SIGNATURE)
"""The states that say a rule no longer fits."""


@dataclass(frozen=True, slots=True)
class Finding:
    """How one rule fits.

    Attributes:
        rule: The rule of the plan.
        target: The place it is about, the one that matched where there are alternatives.
        state: One of the states above.
        detail: What to know about it.
    """

    rule: dict[str, Any]
    target: str
    state: str
    detail: str = ''

    @property
    def drifted(self) -> bool:
        """Whether the rule no longer fits."""
        return self.state in DRIFT


def resolve(plan: dict[str, Any], path: Sequence[str], scripts: Sequence[str] = ()) -> list[Finding]:
    """How each rule of a plan fits.

    Args:
        plan: The plan.
        path: The folders of the environment, in the order of its `sys.path`.
        scripts: The folders that the paths of scripts are relative to.
    """
    tree = SourceTree(path, scripts)
    inactive = [_inactive(file['when'], tree) for file in plan['files']]
    resolver = _Resolver(tree)
    findings: list[Finding] = []
    for rule in plan['rules']:
        index: int = rule['file']
        reason = inactive[index]
        if reason:
            findings.append(Finding(rule, _first_target(rule), *reason))
        else:
            findings.append(resolver.rule(rule, plan['files'][index]['vars']))
    return findings


def _inactive(when: dict[str, str | None] | None, tree: SourceTree) -> tuple[str, str] | None:
    module = when['module'] if when else None
    if when is None or module is None:
        return None
    if not tree.installed(module):
        return NOT_INSTALLED, f'no package {module}'
    limits = when['version']
    if limits:
        version = tree.version(module)
        if version is None:
            return NOT_ACTIVE, f'{module} has no version that could be compared with {limits}'
        if not contains(limits, version):
            return NOT_ACTIVE, f'{module} {version} is not {limits}'
    return None


@dataclass(frozen=True, slots=True)
class _Place:
    """One place a rule needs: the alternatives for it, and what was found."""

    target: str
    state: str
    detail: str
    found: Found | None = None


class _Resolver:
    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self.names = StaticNames(tree)

    def rule(self, rule: dict[str, Any], variables: dict[str, Any]) -> Finding:
        if rule['kind'] in SOURCE_KINDS:
            found = self.in_source(rule)
            return Finding(rule, found.target, found.state, found.detail)
        if rule['kind'] == 'timer':
            fit, chosen, detail = self.timer(rule)
        else:
            if rule['kind'] in _AT_SEVERAL_PLACES:
                fit = [self.place([target]) for target in rule['targets']]
            else:
                needed = ('start', 'stop', 'lap') if rule['kind'] == 'interval' else ('targets',)
                fit = [self.place(rule[key]) for key in needed if rule[key]]
            callers = [self.place(rule[key]) for key in ('within', 'outside') if rule.get(key)]
            if rule.get('outside') and callers[-1].state == NOT_INSTALLED:
                callers.pop()  # nobody is there to call it
            chosen = next((place for place in (*fit, *callers) if place.state != MATCHED), fit[0])
            detail = chosen.detail
            if rule['kind'] in _AT_SEVERAL_PLACES and len(fit) > 1 and not detail:
                detail = f'and at {len(fit) - 1} more places' if len(fit) > 2 else 'and at one more place'
        if chosen.state == MATCHED:
            lacking = self.lacking(rule, variables, [place.found for place in fit if place.found])
            if lacking:
                return Finding(rule, chosen.target, SIGNATURE, lacking)
            if rule.get('apply') == 'rewrite':
                place = self.in_source(rule)
                detail = place.detail if place.state == MATCHED else f'wrapped, not rewritten: {place.detail}'
        return Finding(rule, chosen.target, chosen.state, detail)

    def in_source(self, rule: dict[str, Any]) -> _Place:
        """The places that a rule finds in the source of its targets: of the first where they are as expected."""
        results = [(target, self.matches(rule, target)) for target in rule['targets']]
        for target, (state, detail) in results:
            if state == MATCHED:
                return _Place(_text(target), state, detail)
        # What is nearest to being right says most.
        order = (AMBIGUOUS, MISSING, UNCHECKED, NOT_INSTALLED)
        target, (state, detail) = min(results, key=lambda result: order.index(result[1][0]))
        return _Place(_text(target), state, detail)

    def matches(self, rule: dict[str, Any], target: tuple[str, str]) -> tuple[str, str]:
        module, qualname = target
        if not self.tree.installed(_package(module)):
            return (
                (MISSING, 'not found: no such script') if is_script(module) else (NOT_INSTALLED, f'no package {module}')
            )
        found = self.tree.module(module)
        if found is None:
            return MISSING, f'no module {module}'
        if found.tree is None:
            return UNCHECKED, found.opaque
        places = matching.places(rule, qualname, found)
        if places.problem:
            most = rule.get('expect', (1, 1))[1]
            return AMBIGUOUS if most is not None and len(places.matches) > most else MISSING, places.problem
        return MATCHED, matching.lines(places)

    def timer(self, rule: dict[str, Any]) -> tuple[list[_Place], _Place, str]:
        """The places of a timer that were found, the one that decides, and what to know of the others.

        Each is patched where it exists. One `with` and one whole `pair` are enough, but a timer that has lost either
        is not what the rule was written for: its phases would no longer nest, or not be seen.
        """
        blocks = [[self.place([target])] for target in rule['with']]
        pairs = [[self.place([(module, end)]) for end in both] for module, *both in rule['pair']]
        places = [place for ends in (*blocks, *pairs) for place in ends]
        fit = [place for place in places if place.state == MATCHED]
        for ways in (blocks, pairs):
            lost = [next((place for place in ends if place.state != MATCHED), None) for ends in ways]
            if lost and lost[0] is not None and None not in lost:
                return fit, lost[0], lost[0].detail
        rest = [f'{place.target}: {place.state}' for place in places if place.state not in (MATCHED, NOT_INSTALLED)]
        return fit, fit[0], '; '.join(rest)

    def place(self, alternatives: Sequence[tuple[str, str]]) -> _Place:
        results = [(target, self.names.look_up(*target)) for target in alternatives]
        for target, found in results:
            if found.state == 'found':
                if found.node is not None and not self.names.manages(found.node):
                    detail = f'{target[1]} is a class: name one of its methods, such as {target[1]}.__init__'
                    return _Place(_text(target), MISSING, detail)
                where = found.module.name if found.module else target[0]
                return _Place(_text(target), MATCHED, '' if where == target[0] else f'defined in {where}', found)
        if any(is_script(module) and not self.tree.installed(module) for module, _ in alternatives):
            script = next(target for target in alternatives if is_script(target[0]))
            return _Place(_text(script), MISSING, 'not found: no such script')
        packages = {_package(target[0]) for target in alternatives}
        if not any(self.tree.installed(package) for package in packages):
            return _Place(_text(alternatives[0]), NOT_INSTALLED, f'no package {", ".join(sorted(packages))}')
        for target, found in results:
            if found.state == 'opaque':
                return _Place(_text(target), UNCHECKED, found.detail)
        for target in alternatives:
            elsewhere = list(self.elsewhere(target))
            if elsewhere:
                state = MOVED if len(elsewhere) == 1 else AMBIGUOUS
                shown = ', '.join(elsewhere[:3]) + (', ...' if len(elsewhere) > 3 else '')
                return _Place(_text(target), state, f'now at {shown}' if state == MOVED else f'now one of {shown}')
        return _Place(_text(alternatives[0]), MISSING, self.why(alternatives[0]))

    def elsewhere(self, target: tuple[str, str]) -> Iterator[str]:
        module, qualname = target
        if is_script(module):
            return
        for name in self.tree.defining(module.split('.')[0], qualname.split('.')):
            if name != module and self.names.defined(name, qualname):
                yield f'{name}:{qualname}'

    def why(self, target: tuple[str, str]) -> str:
        module, qualname = target
        if not self.tree.installed(module):
            return f'no module {module}'
        near = get_close_matches(qualname, self.names.qualnames(module), 1)
        return f'did you mean {near[0]}?' if near else f'no {qualname} in {module}'

    def lacking(self, rule: dict[str, Any], variables: dict[str, Any], places: Sequence[Found]) -> str:
        """What the targets lack of the parameters that the rule names; empty if nothing."""
        known = [(place.parameters, place.open) for place in places if place.parameters is not None]
        named = {name for key in _PARAMETER_KEYS if (name := rule.get(key))}
        # Every function that is patched must have a parameter named by a key of its own...
        for parameters, _ in known:
            lost = sorted(named.difference(parameters))
            if lost:
                return _lost(lost, parameters)
        # ... but what expressions read may come from any of them: a timer's `with` takes more than its `stop`.
        held = {name for parameters, _ in known for name in parameters}
        lost = sorted(_arguments(rule, variables) - held)
        if len(known) < len(places) or not known or any(takes_any for _, takes_any in known) or not lost:
            return ''
        return _lost(lost, known[0][0])


# What these name is done at each of its targets; they are no alternatives.
_AT_SEVERAL_PLACES = ('ray', 'vllm')
_PARAMETER_KEYS = ('label_arg', 'metrics_arg', 'prefix_arg')


def _lost(names: Sequence[str], parameters: Sequence[str]) -> str:
    return f'no parameter {", ".join(names)}; parameters: {", ".join(parameters) or "none"}'


def _arguments(rule: dict[str, Any], variables: dict[str, Any]) -> set[str]:
    """The parameters that a rule's expressions read, those in the vars they use included."""
    names: set[str] = set()
    waiting = list(_trees(rule))
    done: set[str] = set()
    while waiting:
        for part in walk(waiting.pop()):
            if part[0] == 'arg':
                names.add(part[1])
            elif part[0] == 'var' and part[1] not in done:
                done.add(part[1])
                waiting.append(variables[part[1]]['value'])
    return names


def _trees(rule: dict[str, Any]) -> Iterator[Tree]:
    parts = (*rule.get('labels', {}).values(), *rule.get('metrics', {}).values(), *rule.get('measures', ()))
    for holder in (rule, *parts):
        yield from holder['attributes'].values()
        for key in ('name', 'value', 'settings'):
            tree = holder.get(key)
            if tree is not None:
                yield from tree[1].values() if tree[0] == 'word' else (tree,)


def _first_target(rule: dict[str, Any]) -> str:
    for key in ('targets', 'with', 'pair', 'start', 'lap'):
        for target in rule.get(key, ()):
            return _text(target)
    return ''


def _package(module: str) -> str:
    return module if is_script(module) else module.split('.')[0]


def _text(target: Sequence[str]) -> str:
    return f'{target[0]}:{target[1]}' if target[1] else target[0]
