# SPDX-License-Identifier: Apache-2.0
"""Which rule wants what at which place of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import libcst as cst

from lens_auto.codemod.continuing import always_ends
from lens_auto.codemod.index import Call, Index, Placed, Scope, held
from lens_auto.codemod.patterned import patterned
from lens_auto.codemod.source import Source, dotted, is_module, module_of
from lens_auto.codemod.wish import DECORATED, Refused, Wish
from lens_auto.rules.expression import Tree
from lens_auto.rules.plan_build import Built
from lens_auto.wrap.glob import matches

_CALLED = '.__call__'
_SENDS = 'ray'  # what it decorates goes to its workers by value
_PATTERNED = ('loop', 'block', 'call')


class Problem(NamedTuple):
    """Something that is not written, and why.

    Attributes:
        line: Of the file, counted from 1; 0 for no line in particular.
        reason: Why.
        rule: The rule.
        part: Only part of what the rule wants is left out.
    """

    line: int
    reason: str
    rule: Mapping[str, Any]
    part: bool = False


class Wishes(NamedTuple):
    """What the rules want in one file.

    Attributes:
        found: The wishes, in the order of the rules.
        problems: What is left out.
        met: Keys of rules that have a place here, written or not.
    """

    found: list[Wish]
    problems: list[Problem]
    met: set[str]


def wishes(built: Built, source: Source, index: Index, among: Iterable[Mapping[str, Any]] | None = None) -> Wishes:
    """What the rules want in a file.

    Args:
        built: The rules.
        source: The file.
        index: What is in it.
        among: The rules that count; all of them unless given.
    """
    found = Wishes([], [], set())
    for rule in built.plan['rules'] if among is None else among:
        variables = built.plan['files'][rule['file']]['vars']
        framework = built.plan['files'][rule['file']]['framework']
        try:
            for wish in _of(rule, variables, source, index, found):
                bound, travels = index.bound(wish.node, wish.scope), _SENDS in index.imports
                found.found.append(wish._replace(bound=bound, framework=framework, travels=travels))
                found.met.add(rule['key'])
        except Refused as refused:
            found.met.add(rule['key'])
            found.problems.append(Problem(0, str(refused), rule))
    return found


def _of(
    rule: Mapping[str, Any], variables: Mapping[str, Any], source: Source, index: Index, found: Wishes
) -> Iterator[Wish]:
    kind = rule['kind']
    if kind in _PATTERNED:
        yield from patterned(rule, variables, source, index, lambda line, reason: _note(found, rule, line, reason))
    elif kind == 'timer':
        yield from _timed(rule, variables, source, index, found)
    elif kind == 'interval':
        for part in ('start', 'stop', 'lap'):
            yield from _defined(rule, rule[part], variables, source, index, found, part)
    elif kind in DECORATED:
        yield from _defined(rule, rule['targets'], variables, source, index, found)


def _note(found: Wishes, rule: Mapping[str, Any], line: int, reason: str) -> None:
    found.met.add(rule['key'])
    found.problems.append(Problem(line, reason, rule))


def _defined(
    rule: Mapping[str, Any],
    targets: Iterable[tuple[str, str]],
    variables: Mapping[str, Any],
    source: Source,
    index: Index,
    found: Wishes,
    part: str = '',
) -> Iterator[Wish]:
    """The functions that a rule names by their qualified name."""
    for module, qualname in targets:
        if not is_module(source.path, module):
            continue
        there = [scope for scope in index.definitions if scope.qualname == qualname and not _is_other_face(scope)]
        owner, _, name = qualname.rpartition('.')
        owners = [scope for scope in index.definitions if owner and scope.qualname == owner and scope.is_class]
        if not there and owners:
            # It comes from a base, or is made by a decorator of the class.
            for scope in owners:
                assert scope.node is not None
                of = f'{module}:{qualname}'
                yield Wish(rule['kind'], scope, scope.node, rule, rule, variables, part, target=of, method=name)
            if not part:
                return
        if not there:
            if not owners:
                _note(found, rule, 0, _absent(index, qualname))
            continue
        for scope in there:
            node = scope.node
            assert node is not None
            yield Wish(
                rule['kind'], scope, node, rule, rule, variables, part, target=f'{module}:{qualname}', held=held(node)
            )
        if not part:
            return  # the first alternative that is there counts; of an interval, each is an end


def _is_other_face(scope: Scope) -> bool:
    """Whether a definition is not the function itself: an overload, or the setter of a property."""
    node = scope.node
    if node is None:
        return False
    for decorator in node.decorators:
        name = dotted(decorator.decorator)
        if name in ('overload', 'typing.overload') or name.endswith(('.setter', '.deleter')):
            return True
    return False


def _absent(index: Index, qualname: str) -> str:
    """Why there is no such function, where there is something of its name."""
    if '.' not in qualname and qualname in index.names:
        return f'{qualname} is not defined here, only named: name the module that defines it'
    return f'there is no {qualname} here'


def _timed(
    rule: Mapping[str, Any], variables: Mapping[str, Any], source: Source, index: Index, found: Wishes
) -> Iterator[Wish]:
    """Where a timer is used: its `with` blocks, and its starts and stops that are statements."""
    module = module_of(source.path)
    if rule['only_from'] is not None and not any(matches(pattern, module) for pattern in rule['only_from']):
        return
    for placed in index.withs:
        assert isinstance(placed.node, cst.With)
        for item in placed.node.items:
            call = item.item
            if isinstance(call, cst.Call) and not _of_timer(rule, placed.scope):
                times = _times(rule, call, index)
                if times is None:
                    reason = f'whether `{dotted(call.func)}` is the timer shows at run time only: nothing here makes it'
                    _note(found, rule, source.line(source.span(call)[0]), reason)
                if not times:
                    continue
                yield from _labelled(
                    'block', rule, call, placed.node, placed.scope, variables, source, module, found, index
                )
    ends = {
        'begin': {_last(start) for _, start, _ in rule['pair']},
        'end': {_last(stop) for _, _, stop in rule['pair']},
    }
    # Both ends or none: a span that only begins would last until its parent ends.
    both: dict[str, list[Wish]] = {'begin': [], 'end': []}
    for kind, names in ends.items():
        for call in index.calls:
            if (
                _last(dotted(call.node.func)) in names
                and '.' in dotted(call.node.func)
                and not _of_timer(rule, call.scope)
            ):
                for wish in _labelled(
                    kind, rule, call.node, call.line, call.scope, variables, source, module, found, index
                ):
                    until = _until(call, wish, index, ends['end']) if kind == 'begin' else None
                    both[kind].append(wish._replace(until=until))
    unseen = _stopped_elsewhere(rule, index, ends['end'])
    begun, ended = ({wish.label for wish in listed} - unseen for listed in both.values())
    for wish in both['begin']:
        if wish.label not in ended:
            reason = f'`{wish.label}` is not stopped in this file by a statement on a line of its own'
            _note(found, rule, source.line(source.span(wish.node)[0]), reason)
    yield from (wish for listed in both.values() for wish in listed if wish.label in begun & ended)


def _stopped_elsewhere(rule: Mapping[str, Any], index: Index, names: set[str]) -> set[str | None]:
    """Labels that a call stops which is no statement by itself: nothing can be written behind it."""
    statements = {id(call.node) for call in index.calls}
    return {
        _label(rule, placed.node)
        for placed in index.every_call.values()
        if isinstance(placed.node, cst.Call)
        and id(placed.node) not in statements
        and _last(dotted(placed.node.func)) in names
    }


def _until(begin: Call, wish: Wish, index: Index, names: set[str]) -> cst.SimpleStatementLine | None:
    """The statement that stops, in the same block, what one starts; none where something begun between goes on."""
    later = begin.block[begin.block.index(begin.line) + 1 :]
    for call in index.calls:
        same = _last(dotted(call.node.func)) in names and dotted(call.node.func).rpartition('.')[0] == wish.timer
        if same and call.line in later and _label(wish.rule, call.node) == wish.label:
            return call.line
    return None


def _times(rule: Mapping[str, Any], call: cst.Call, index: Index) -> bool | None:
    """Whether what a `with` statement calls is a rule's timer; None where it may be.

    Args:
        rule: The rule.
        call: The call.
        index: What is in the file.
    """
    name = dotted(call.func)
    if _last(name) in {_last(qualname) for _, qualname in rule['with']}:
        return True
    makers = {_last(qualname.removesuffix(_CALLED)) for _, qualname in rule['with'] if qualname.endswith(_CALLED)}
    if not makers or not name:
        return False
    made = index.made.get(name)
    if made is None:
        return None if _label(rule, call) in rule['labels'] else False
    return bool(made & makers)


def _timer(rule: Mapping[str, Any], call: cst.Call) -> str:
    """The expression that gives the timer of a call, as written; '' for a function that is the timer."""
    owner, _, last = dotted(call.func).rpartition('.')
    targets = [target for part in ('with', 'pair') for target in rule[part]]
    if any(_last(name) == last for target in targets for name in target[1:]):
        return owner
    return dotted(call.func)


def _last(qualname: str) -> str:
    return qualname.rpartition('.')[2]


def _of_timer(rule: Mapping[str, Any], scope: Scope) -> bool:
    """Whether code is the timer's own, which calls its parts on the program's behalf."""
    own = {target[1].rpartition('.')[0] for part in ('with', 'pair') for target in rule[part]} - {''}
    return any(scope.qualname == name or scope.qualname.startswith(f'{name}.') for name in own)


def _labelled(
    kind: str,
    rule: Mapping[str, Any],
    call: cst.Call,
    node: cst.CSTNode,
    scope: Scope,
    variables: Mapping[str, Any],
    source: Source,
    module: str,
    found: Wishes,
    index: Index,
) -> Iterator[Wish]:
    """A use of a timer with a label that is written there."""
    label = _label(rule, call)
    line = source.line(source.span(call)[0])
    if label is None:
        if kind != 'end' and dotted(call.func).partition('.')[0] != 'time':
            _note(found, rule, line, 'the label is not written here as text: which span this is shows at run time only')
        return
    entry = _entry(rule, label)
    if entry is None or entry['drop']:
        return
    over = entry['continues_over']
    if over is not None and not (kind == 'block' and _always_ends(rule, label, over, Placed(node, scope), call, index)):
        if kind != 'end':
            _note(
                found, rule, line, 'a span that goes on in the next block (`continues_over`) needs the rule at run time'
            )
        return
    timer = _timer(rule, call)
    folded = here(scope, module)
    folded[('label',)] = ('c', label)
    folded[('arg', rule['label_arg'] or 'label')] = ('c', label)
    if timer:
        folded[('self',)] = variable(timer)
    yield Wish(
        kind, scope, node, rule, entry, variables, label=label, timer=timer, folded=folded, target=f'label {label}'
    )


def variable(chain: str) -> Tree:
    """The tree that reads a name, or a chain of attributes, where code stands.

    Args:
        chain: `timer`, `self.timer`.
    """
    first, *rest = chain.split('.')
    tree: Tree = ('frame', first)
    for name in rest:
        tree = ('.', tree, name)
    return tree


def here(scope: Scope, module: str) -> dict[Tree, Tree]:
    """What is known of code by its place: where a call from there comes from.

    Args:
        scope: What holds the code.
        module: The file's name as a module.
    """
    return {('caller', 'module'): ('c', module), ('caller', 'function'): ('c', scope.name)}


def _always_ends(
    rule: Mapping[str, Any], label: str, over: Sequence[str], placed: Placed, call: cst.Call, index: Index
) -> bool:
    starts = {_last(start) for _, start, _ in rule['pair']}

    def timed(call: cst.Call) -> tuple[str, str] | None:
        written = _label(rule, call) if _last(dotted(call.func)) in starts or _times(rule, call, index) else None
        return None if written is None else (_timer(rule, call), written)

    return always_ends(placed, _timer(rule, call), label, over, index, timed)


def _label(rule: Mapping[str, Any], call: cst.Call) -> str | None:
    named = rule['label_arg']
    for number, argument in enumerate(call.args):
        if argument.star or (argument.keyword is None and number):
            return None
        if argument.keyword is None or argument.keyword.value in (named, 'label', 'name'):
            value = argument.value
            if isinstance(value, cst.SimpleString):
                text = value.evaluated_value
                return text if isinstance(text, str) else None
            return None
    return None


def _entry(rule: Mapping[str, Any], label: str) -> Mapping[str, Any] | None:
    if label in rule['labels']:
        return rule['labels'][label]
    return next((e for p, e in rule['labels'].items() if ('*' in p or '?' in p) and matches(p, label)), None)
