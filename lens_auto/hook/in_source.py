# SPDX-License-Identifier: Apache-2.0
"""Rules that stand in the program's source (`lens_auto.source`): sites are made as the source asks for them.

They are rules like those of a file, and go through the same builder. Each entry here is a fail-open boundary.
"""

from __future__ import annotations

from lens_auto.hook.resolve import Unresolved, resolve_in
from lens_auto.hook.sites import Builder
from lens_auto.hook.wanted import Wanted
from lens_auto.hook.written import rule_of
from lens_auto.record.foreign import foreign
from lens_auto.record.format import MISSING
from lens_auto.record.span import current
from lens_auto.record.standard import FunctionType
from lens_auto.wrap.block import BlockSite, Pairs
from lens_auto.wrap.code import Unwrappable, bare
from lens_auto.wrap.expression import Unreadable
from lens_auto.wrap.figures import Figures
from lens_auto.wrap.readers import Readers
from lens_auto.wrap.spelled import Misspelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from lens_auto.hook.native import Native
    from lens_auto.hook.resolve import Place
    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.record.span import Span
    from lens_auto.wrap.runtime import Runtime

MOST = 4096  # blocks remembered; a name made from a request id must not grow the table
MARK = '__lens_source__'
# Kinds of rules whose places the source may mark as a block.
_BLOCKS = ('timer', 'loop', 'block', 'call')


class _Block:
    """A block as the source says it."""

    __slots__ = ('keys', 'on', 'rule', 'site')

    def __init__(self, keys: dict[str, Any], rule: dict[str, Any], site: BlockSite, on: bool) -> None:
        self.keys = keys
        self.rule = rule
        self.site = site
        self.on = on


class _Decorated:
    """A decorated function, and the runtime keys of the sites in place for it."""

    __slots__ = ('keys', 'place', 'wanted')

    def __init__(self, wanted: Wanted, place: Place) -> None:
        self.wanted = wanted
        self.place = place
        self.keys: list[str] = []


class InSource:
    """The rules that the source of this process's modules holds."""

    def __init__(
        self,
        plan: dict[str, Any],
        recorder: Recorder,
        faults: Faults,
        runtime: Runtime,
        resettle: Callable[[Any], None],
        native: Native,
        reselect: Callable[[], None],
    ):
        """See the class.

        Args:
            plan: The plan; its last file is the one these rules are of, see `written.file_of`.
            recorder: The process's recorder.
            faults: Its fault count.
            runtime: Where sites are found by key.
            resettle: See `ResourceSite`.
            native: What frameworks record by themselves.
            reselect: Selects anew: a group has become known.
        """
        self._file = len(plan['files']) - 1
        self._groups: dict[str, Any] = plan['files'][self._file]['groups']
        self._vars: dict[str, Any] = plan['files'][self._file]['vars']
        self._timers = [rule['key'] for rule in plan['rules'] if rule['kind'] == 'timer']
        self._rules = frozenset(rule['key'] for rule in plan['rules'] if rule['kind'] in _BLOCKS)
        self._native = native
        self._frameworks: dict[str, list[int]] = {}
        for at, file in enumerate(plan['files']):
            self._frameworks.setdefault(file['framework'], []).append(at)
        self._recorder = recorder
        self._faults = faults
        self._runtime = runtime
        self._reselect = reselect
        self._figures: dict[str, Figures] = {}
        self._builder = Builder({**plan, 'rules': []}, recorder, faults, self._figures, resettle, native)
        self._blocks: dict[str, list[_Block]] = {}
        self._count = 0
        self._pairs = Pairs()
        self._decorated: list[_Decorated] = []
        self._kinds: dict[int, set[str]] = {}
        self._nested: dict[Any, Any] = {}
        self.of_rules: Callable[[str], dict[Any, Any]] = lambda key: {}

    def select(self, groups: tuple[frozenset[str], ...], traces: bool, metrics: bool, resources: bool) -> None:
        """Switch on and off what the source says; see `Patches.select`."""
        self._builder.select(groups, traces, metrics, resources)
        for blocks in self._blocks.values():
            for each in blocks:
                each.on = self._on(each.rule)
        for each in self._decorated:
            on = self._on(each.wanted.rule)
            if on and not each.keys:
                self._put(each)
            elif not on and each.keys:
                self._take(each)

    def _on(self, rule: dict[str, Any]) -> bool:
        """Whether a rule is on here; one that its framework's own telemetry stands for is not."""
        framework = rule['native_of']
        if framework and any(self._native.records(at) for at in self._frameworks.get(framework, ())):
            return False
        return self._builder.on(rule)

    def says(self, kind: str, function: Any) -> bool:
        """Whether the source holds a rule of this kind for a function: then a file's rule stands down.

        Args:
            kind: The rule's kind.
            function: The function.
        """
        return kind in self._kinds.get(id(function), ())

    def disable(self, key: str) -> None:
        """Take what a rule of the source has put in place out, after a fault of ours in it.

        Args:
            key: A rule's key, or a runtime key of one of its sites.
        """
        for each in self._decorated:
            if each.keys and (key in each.keys or key == each.wanted.rule['key']):
                self._take(each)
                self._decorated = [other for other in self._decorated if other is not each]
        for blocks in self._blocks.values():
            for block in blocks:
                if block.rule['key'] == key:
                    block.rule = {**block.rule, 'group': '', 'kind': 'function'}
                    block.on = False

    def _rule(self, kind: str, part: str, name: str, keys: dict[str, Any], at: str) -> dict[str, Any]:
        rule, absent = rule_of(kind, part, name, keys, self._file, self._groups, self._vars)
        for reason in absent:
            self._recorder.report(MISSING, {'key': '', 'target': at[:256], 'reason': reason[:256]})
        group = rule['group']
        if group is not None and group not in self._groups:
            self._groups[group] = {'bucket': rule['bucket']}
            self._reselect()
        self._figures.setdefault(rule['key'], Figures(rule['budget']))
        return rule

    def decorate(self, kind: str, part: str, name: str, keys: dict[str, Any], function: Any) -> None:
        """A function of the source has a rule.

        Args:
            kind: The rule's kind.
            part: For an interval, which end the function is.
            name: The span's name, '' where there is none.
            keys: The other keys of the rule.
            function: The function, or a class that is a context manager.
        """
        at = f'{getattr(function, "__module__", "")}:{getattr(function, "__qualname__", "")}'
        try:
            code = getattr(function, '__code__', None)
            if '<locals>' in at and (code, kind, name) in self._nested:
                function.__code__ = self._nested[code, kind, name].ours  # of a call before: the same code
                return
            method = str(keys.get('method', ''))
            place = resolve_in(function, method, f'{at}.{method}'.rstrip('.'))
            place.holds |= bool(keys.get('held'))
            rule = self._rule(kind, part, name, keys, at)
            module, _, qualname = at.partition(':')
            decorated = _Decorated(Wanted(rule, part, module, qualname), place)
            self._decorated.append(decorated)
            self._kinds.setdefault(id(place.functions[0]), set()).add(kind)
            self._mark(place.functions[0], (kind, part, name, keys))
            if self._on(rule):
                self._put(decorated)
                if '<locals>' in at and len(decorated.keys) == 1:
                    self._nested[code, kind, name] = self._runtime.sites[decorated.keys[0]].patches[0]
        except (Unresolved, Misspelled) as problem:
            if foreign(problem):
                raise
            self._recorder.report(MISSING, {'key': '', 'target': at[:256], 'reason': str(problem)[:256]})
        except Exception as error:
            if foreign(error):
                raise
            self._faults.take('source', name or kind, error)

    def _mark(self, function: Any, said: tuple[str, str, str, dict[str, Any]]) -> None:
        """Write on a function what the source says of it: by value, as Ray sends a script's class, it comes along."""
        marks: tuple[Any, ...] = function.__dict__.get(MARK, ())
        if said not in marks:
            function.__dict__[MARK] = (*marks, said)

    def loaded(self, found: Any) -> None:
        """Ray has loaded a class or function in a worker: what the source says of it holds here, too.

        Args:
            found: The class or function.
        """
        for function in _functions(found):
            marks: tuple[Any, ...] = function.__dict__.get(MARK, ())
            if not marks or any(patch.ours is function.__code__ for patch in self._patches()):
                continue  # nothing is said, or it came by name: its module has been imported here
            bare(function)
            for kind, part, name, keys in marks:
                self.decorate(kind, part, name, keys, function)

    def _patches(self) -> list[Any]:
        return [patch for site in self._runtime.sites.values() for patch in getattr(site, 'patches', ())]

    def _put(self, each: _Decorated) -> None:
        rule = each.wanted.rule
        self._count += 1
        try:
            made = self._builder.build(each.wanted, each.place, f'{rule["key"]}#{self._count}')
        except (Unwrappable, Unreadable, ValueError) as problem:
            if foreign(problem):
                raise
            at = f'{each.wanted.module}:{each.wanted.qualname}'
            self._recorder.report(MISSING, {'key': '', 'target': at[:256], 'reason': str(problem)[:256]})
            return
        self._runtime.sites.update(made)
        each.keys = list(made)

    def _take(self, each: _Decorated) -> None:
        for key in each.keys:
            site = self._runtime.sites.pop(key, None)
            if site is not None:
                for patch in site.patches:
                    patch.shut()
        each.keys = []

    def _block(self, name: str, keys: dict[str, Any]) -> _Block | None:
        listed = self._blocks.get(name)
        for each in listed or ():
            if each.keys == keys:
                return each
        if self._count >= MOST:
            return None
        self._count += 1
        rule = self._rule('block', '', name, keys, name)
        readers = Readers(rule, rule['group'], rule['bucket'], None, self._vars)
        site = BlockSite(rule, readers, self._figures[rule['key']], self._recorder, self._faults, self._rules)
        each = _Block(keys, rule, site, self._on(rule))
        # Looked up anew: to select may have come in between.
        self._blocks.setdefault(name, []).append(each)
        return each

    def open(self, name: str, keys: dict[str, Any], frame: FrameType, attach: bool = True) -> Span | None:
        """A block of the source begins.

        Args:
            name: The span's name.
            keys: The other keys of the rule.
            frame: Of the function that holds the block.
            attach: Make the span current.
        """
        try:
            block = self._block(name, keys)
            if block is None or not block.on:
                return None
            return block.site.begin(frame, attach)
        except Exception as error:
            if foreign(error):
                self._cut(self._opening(error))
                raise
            self._faults.take('source', name, error)
            return None
        except BaseException as error:
            self._cut(self._opening(error))
            raise

    def _opening(self, error: BaseException) -> Span | None:
        """The span that was being opened as an exception of the program came."""
        here, trace = current.get(), error.__traceback__
        inside = trace is not None and trace.tb_next is not None
        found = inside and here is not None and isinstance(here.site, BlockSite) and self._recorder.newest(here)
        return here if found else None

    def close(self, span: Span, error: BaseException | None) -> None:
        """A block has ended.

        Args:
            span: From `open`.
            error: What left it, or None.
        """
        try:
            if error is None:
                span.site.leave(span, None)
            else:
                span.site.fail(span, error)
        except Exception as problem:
            if foreign(problem):
                self._cut(span)
                raise
            self._faults.take('source', span.site.key, problem)
        except BaseException:  # KeyboardInterrupt is the program's; the span has ended all the same
            self._cut(span)
            raise

    def _cut(self, span: Span | None) -> None:
        if span is not None and span.epoch >= 0:
            span.site.cut(span)

    def begin(self, timer: Any, label: str, name: str, keys: dict[str, Any], frame: FrameType) -> None:
        """A timer has started.

        Args:
            timer: The timer.
            label: What it times.
            name: The span's name.
            keys: The other keys of the rule.
            frame: Of the function that started it.
        """
        if any((id(timer), label) in self.of_rules(key) for key in self._timers):
            return  # a rule has its span
        attach = bool(keys.get('current'))
        span = self.open(name, keys, frame, attach)
        if span is not None:
            self._pairs.begun(id(timer), label, span, attach)

    def end(self, timer: Any, label: str) -> None:
        """A timer has stopped.

        Args:
            timer: The timer.
            label: What it timed.
        """
        span = self._pairs.ended(id(timer), label)
        if span is None:
            return
        if span.epoch >= 0:
            self.close(span, None)
        if span.up is not None and span.up.pending is not None:
            span.up.pending = [other for other in span.up.pending if other is not span] or None

    def call(self, function: Any, name: str, keys: dict[str, Any], frame: FrameType) -> Any:
        """What to call in place of a function, once.

        Args:
            function: The function.
            name: The span's name.
            keys: The other keys of the rule.
            frame: Of the function that holds the call.
        """
        block = self._block(name, keys)
        if block is None or not block.on:
            return function

        def called(*args: Any, **kwargs: Any) -> Any:
            span = self.open(name, keys, frame)
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                if span is not None:
                    self.close(span, error)
                raise
            if span is not None:
                self.close(span, None)
            return result

        return called


def _functions(found: Any) -> list[Any]:
    """A function, or those that a class and its bases hold."""
    if isinstance(found, FunctionType):
        while isinstance(found.__dict__.get('__wrapped__'), FunctionType):  # Ray's own around it
            found = found.__dict__['__wrapped__']
        return [found]
    held: list[Any] = []
    for base in type.mro(found) if isinstance(found, type) else ():
        held += base.__dict__.values()
    inner = [getattr(each, '__func__', None) or getattr(each, 'fget', None) or each for each in held]
    return [each for each in inner if isinstance(each, FunctionType)]
