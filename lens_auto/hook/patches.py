# SPDX-License-Identifier: Apache-2.0
"""Which rule is patched where in this process: puts sites in place as modules execute, and takes them out again."""

from __future__ import annotations

from lens_auto.hook.in_source import InSource
from lens_auto.hook.loaded import is_script_of, names_of, rest_of, says, shown_in
from lens_auto.hook.native import Native
from lens_auto.hook.resolve import Remote, Unresolved, resolve, resolve_in
from lens_auto.hook.sites import Builder
from lens_auto.hook.wanted import MAIN, Wanted, targets
from lens_auto.hook.when import reason_off
from lens_auto.record.foreign import foreign
from lens_auto.record.format import MISSING, PATCHED, UNPATCHED
from lens_auto.wrap.code import Unwrappable, bare
from lens_auto.wrap.expression import Unreadable
from lens_auto.wrap.figures import Figures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType
    from typing import Any

    from lens_auto.hook.resolve import Place
    from lens_auto.hook.sources import Sources
    from lens_auto.ray.tasks import Tasks
    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.record.span import Span
    from lens_auto.rewrite.key import Key
    from lens_auto.wrap.place_site import PlaceSite
    from lens_auto.wrap.runtime import Runtime
    from lens_auto.wrap.site import Site


class Patches:
    """The rules of the plan against the modules of this process.

    Attributes:
        rewrites: Some are applied by changing source.
    """

    def __init__(
        self,
        plan: dict[str, Any],
        recorder: Recorder,
        faults: Faults,
        runtime: Runtime,
        resettle: Callable[[Any], None],
        importable: Callable[[str], bool],
        cache: str = '',
    ):
        """See the class.

        Args:
            plan: The compiled plan.
            recorder: The process's recorder.
            faults: Its fault count.
            runtime: Where sites are found by key.
            resettle: See `ResourceSite`.
            importable: Says whether a module can be found, without importing it.
            cache: Where changed source is kept compiled; '' for nowhere.
        """
        self._plan = plan
        self._recorder = recorder
        self._faults = faults
        self._runtime = runtime
        self._figures = {rule['key']: Figures(rule['budget']) for rule in plan['rules']}
        self._native = Native(plan['files'], importable)
        self._builder = Builder(plan, recorder, faults, self._figures, resettle, self._native)
        self._resettle = resettle
        self._in_source: InSource | None = None
        self._deferred: set[str] = set()
        self._by_module: dict[str, list[Wanted]] = {}
        self._timers: list[str] = [rule['key'] for rule in plan['rules'] if rule['kind'] == 'timer']
        for rule in plan['rules']:
            for wanted in targets(rule):
                self._by_module.setdefault(wanted.module, []).append(wanted)
        self._executed: dict[str, ModuleType] = {}
        self._applies: dict[int, bool] = {}
        self._disabled: set[str] = set()
        self._loads = 0
        self._importable = importable
        self.rewrites = any(wanted.rewrites for listed in self._by_module.values() for wanted in listed)
        self._cache = cache
        self._sources: Sources | None = None

    def knows(self, tasks: Tasks) -> None:
        """Ray is there.

        Args:
            tasks: The tasks of Ray that this process submits and runs.
        """
        self._builder.tasks = tasks

    def with_source(self, reselect: Callable[[], None]) -> InSource:
        """The rules that the source of the program holds.

        Args:
            reselect: Selects anew.
        """
        self._in_source = InSource(
            self._plan, self._recorder, self._faults, self._runtime, self._resettle, self._native, reselect
        )
        self._in_source.of_rules = self._builder.opened
        return self._in_source

    def trace_engines(self, on: bool) -> None:
        """Whether engines are to trace by themselves; counts from the next `select` on.

        Args:
            on: The setting `vllm_native_tracing`.
        """
        self._builder.traces_engines = on

    def modules(self) -> list[str]:
        """The modules the rules name."""
        return list(self._by_module)

    def select(self, groups: tuple[frozenset[str], ...], traces: bool, metrics: bool, resources: bool) -> None:
        """Switch rules on and off; modules that have executed are patched or restored at once.

        Args:
            groups: The span groups that are on, by rule file.
            traces: Spans are recorded.
            metrics: Metric points are recorded.
            resources: Configuration objects are read.
        """
        self._builder.select(groups, traces, metrics, resources)
        if self._in_source is not None:
            self._in_source.select(groups, traces, metrics, resources)
        if self.rewrites:
            self._runtime.places.forget()
        self._tell_deferred()
        for name, module in list(self._executed.items()):
            for wanted in self._by_module[name]:
                on = self._builder.on(wanted.rule)
                if self._sources is not None and not self._sources.is_there(wanted):
                    continue
                if on and not wanted.keys:
                    self._put(module, wanted)
                elif not on and wanted.keys:
                    self._take(wanted)

    def config_says(self, enabled: bool | None) -> bool:
        """The run's own config has been built: a framework's own telemetry goes by it.

        Args:
            enabled: Whether it says that telemetry is on, if it says anything of it.

        Returns:
            Whether rules may have to be selected anew.
        """
        if enabled is None or enabled == self._native.enabled:
            return False
        self._native.enabled = enabled
        return True

    def _tell_deferred(self) -> None:
        for rule in self._plan['rules']:
            key, labels = rule['key'], rule.get('labels', {})
            natives = rule['native'] or any(label['native'] for label in labels.values())
            if natives and key not in self._deferred and self._native.records(rule['file']):
                self._deferred.add(key)
                module = self._plan['files'][rule['file']]['native']['module']
                self._recorder.report(MISSING, {'key': key, 'target': '', 'reason': f'{module} records it by itself'})

    def module(self, name: str, module: ModuleType) -> None:
        """A module has executed: patch what rules that are on name in it.

        Args:
            name: Its name.
            module: The module; after `importlib.reload` it holds new functions, which are patched anew.
        """
        if name not in self._by_module:
            return
        self._executed[name] = module
        for wanted in self._by_module[name]:
            if self._builder.on(wanted.rule):
                self._put(module, wanted)

    def ask_again(self) -> None:
        """More can be found than before: look again at executed modules whose rules' file did not apply."""
        for name, module in list(self._executed.items()):
            for wanted in self._by_module[name]:
                if self._applies.get(wanted.rule['file']) is False and self._builder.on(wanted.rule):
                    self._put(module, wanted)

    def changes(self, name: str) -> bool:
        """Whether rules are on the source of a module.

        Args:
            name: The module.
        """
        return any(wanted.rewrites for wanted in self._by_module.get(name, ()))

    @property
    def sources(self) -> Sources:
        """Modules whose source is changed, and the program that runs as `__main__`; most processes have neither."""
        if self._sources is None:
            from lens_auto.hook.sources import Sources

            self._sources = Sources(
                *(self._by_module, self._executed, self._builder.on, self._may_record),
                *(self._put, self._put_rewritten, self._recorder, self._cache),
            )
        return self._sources

    def place(self, key: Key) -> PlaceSite | None:
        """The site of a place in changed source, at its first use in this process; None where its rule is off.

        Args:
            key: The place, as the source says it.
        """
        rule = next((rule for rule in self._plan['rules'] if rule['key'] == key.rule), None)
        if rule is None or key.rule in self._disabled or not self._builder.on(rule) or not self._file_applies(rule):
            return None
        return self._builder.place(rule, key)

    def records(self, module: str, name: str, group: Any) -> bool:
        """Whether a rule is in place on a function of a module, for a span of this name and group.

        Args:
            module: The module.
            name: The span's name.
            group: Its group.
        """
        return any(
            wanted.keys and wanted.rule['kind'] == 'function' and wanted.rule['group'] == group
            for wanted in self._by_module.get(module, ())
            if wanted.rule['name'] == ('c', name)
        )

    def begun(self, name: str, up: Span | None) -> bool:
        """Whether a rule has the span of a timer that has started and not stopped.

        Args:
            name: The span's name.
            up: What is current, and was when it started.
        """
        return any(
            span.name == name and span.up is up
            for key in self._timers
            for spans in list(self._builder.opened(key).values())
            for span in spans
        )

    def _may_record(self, rule: dict[str, Any]) -> bool:
        """Whether a rule is on, or the program's own config may yet switch it on: source is changed now or never."""
        if rule['key'] in self._disabled or not self._file_applies(rule):
            return False
        return self._builder.on(rule) or any(
            # Nobody is told that a file does not apply whose modules nobody has asked for.
            reason_off(self._plan['files'][other['file']]['when'], self._importable) is None
            for other in self._plan['rules']
            if other['kind'] == 'resource' and other['settings'] is not None
        )

    def _put_rewritten(self, module: ModuleType | None, wanted: Wanted) -> None:
        key: str = wanted.rule['key']
        if wanted.places:
            wanted.keys = [key]
            self._recorder.report(PATCHED, {'key': key, 'target': wanted.target, 'state': 'patched'})
            return
        reason = wanted.reason
        if reason is None:
            loader: Any = None if module is None else module.__dict__.get('__loader__')
            reason = f'it was imported without us, or before this was switched on (by {type(loader).__name__})'
        if reason:
            self._recorder.report(MISSING, {'key': key, 'target': wanted.target, 'reason': reason[:256]})

    def _put(self, module: ModuleType, wanted: Wanted) -> None:
        rule = wanted.rule
        key: str = rule['key']
        target = wanted.target
        if key in self._disabled or not self._file_applies(rule):
            return
        if not wanted.part and self._other_alternative(wanted):
            return
        if wanted.is_place or wanted.places:
            self._put_rewritten(module, wanted)
            return
        try:
            place = resolve(module, wanted.qualname)
            if self._in_source is not None and self._in_source.says(rule['kind'], place.functions[0]):
                raise Unresolved(f'the source of {wanted.qualname} says it already')
            if self._in_place(wanted, place):
                return  # reloaded, and what it took from another module is what it was
            wanted.keys = []
            number = self._by_module[wanted.module].index(wanted)
            made = self._builder.build(wanted, place, f'{key}{wanted.module}:{number}')
        except Remote:
            return  # it runs in Ray's workers alone, see `loaded`
        except (Unresolved, Unwrappable, Unreadable, ValueError) as problem:
            if foreign(problem):
                raise
            self._recorder.report(MISSING, {'key': key, 'target': target, 'reason': str(problem)[:256]})
            return
        except Exception as error:
            if foreign(error):
                raise
            self._faults.take('patch', key, error)
            return
        self._runtime.sites.update(made)
        wanted.keys = list(made)
        self._recorder.report(PATCHED, {'key': key, 'target': target, 'state': 'patched'})
        for site in made.values():
            for reason in site.absent():
                self._recorder.report(MISSING, {'key': key, 'target': target, 'reason': reason[:256]})

    def loaded(self, module: str, qualname: str, found: Any) -> None:
        """Ray has loaded a class or function in a worker: patch what the rules name in it.

        Args:
            module: The module it was defined in, as Ray says; '__main__' is the driver's script.
            qualname: Its qualified name there.
            found: The class or function.
        """
        if self._in_source is not None:
            self._in_source.loaded(found)
        of_script = False
        for name, within, holder in names_of(module, qualname, found):
            of_script |= name == '__main__'
            for wanted in self._of_module(name, holder):
                rest = rest_of(wanted.qualname, within)
                if rest is not None and not wanted.is_place and self._builder.on(wanted.rule):
                    self._put_loaded(wanted, holder, rest)
        if of_script:
            for namespace in shown_in(found):
                for wanted in self._of_module('__main__', found):
                    first, _, rest = wanted.qualname.partition('.')
                    if first not in namespace or namespace[first] is found or wanted.is_place:
                        continue
                    if self._builder.on(wanted.rule):
                        self._put_loaded(wanted, namespace[first], rest)

    def _of_module(self, module: str, holder: Any) -> list[Wanted]:
        if module != '__main__':
            return self._by_module.get(module, [])
        return [wanted for name, listed in self._by_module.items() if is_script_of(name, holder) for wanted in listed]

    def _put_loaded(self, wanted: Wanted, found: Any, rest: str) -> None:
        rule = wanted.rule
        key: str = rule['key']
        target = wanted.target
        if key in self._disabled or not self._file_applies(rule):
            return
        try:
            place = resolve_in(found, rest, wanted.qualname)
            if any(function.__code__ in self._ours() for function in place.functions):
                return  # by reference: patched when its module was imported, or with another class that shares it
            for function in place.functions:
                bare(function)
            if any(says(function.__code__, key) for function in place.functions):
                return  # its own source does, as the driver sent it
            self._loads += 1
            made = self._builder.build(wanted, place, f'{key}{wanted.module}:{self._loads}@')
        except (Unresolved, Unwrappable, Unreadable, ValueError) as problem:
            if foreign(problem):
                raise
            self._recorder.report(MISSING, {'key': key, 'target': target, 'reason': str(problem)[:256]})
            return
        except Exception as error:
            if foreign(error):
                raise
            self._faults.take('patch', key, error)
            return
        self._runtime.sites.update(made)
        wanted.keys += made
        self._recorder.report(PATCHED, {'key': key, 'target': target, 'state': 'patched'})

    def _ours(self) -> set[CodeType]:
        return {patch.ours for site in self._runtime.sites.values() for patch in getattr(site, 'patches', ())}

    def _in_place(self, wanted: Wanted, place: Place) -> bool:
        patches = [patch for key in wanted.keys for patch in self._runtime.sites[key].patches]
        return any(patch.function is place.functions[0] and patch.function.__code__ is patch.ours for patch in patches)

    def _other_alternative(self, wanted: Wanted) -> bool:
        """Targets of a rule are one place under several names: only the first that is there is patched."""
        return any(
            other.rule is wanted.rule and other is not wanted and other.keys and not other.part
            for name, listed in self._by_module.items()
            if (name == MAIN) == (wanted.module == MAIN)
            for other in listed
        )

    def _file_applies(self, rule: dict[str, Any]) -> bool:
        index: int = rule['file']
        if self._applies.get(index):
            return True
        # Asked anew while it does not: a worker of Ray imports Ray before its job's folder is on the path.
        reason = reason_off(self._plan['files'][index]['when'], self._importable)
        if reason is not None and index not in self._applies:
            self._recorder.report(MISSING, {'key': rule['key'], 'target': '', 'reason': reason})
        self._applies[index] = reason is None
        return reason is None

    def _take(self, wanted: Wanted) -> None:
        for key in wanted.keys:
            site = self._runtime.sites.pop(key, None)
            if site is not None:
                restore(site)
        wanted.keys = []
        self._recorder.report(UNPATCHED, {'key': wanted.rule['key'], 'target': wanted.target})

    def disable(self, key: str) -> None:
        """Take a rule out of this process after a fault of ours in it.

        Args:
            key: A rule's key, or a runtime key of one of its sites.
        """
        if key in self._figures:
            self._disabled.add(key)
        if self.rewrites:
            self._runtime.places.forget()
        for listed in self._by_module.values():
            for wanted in listed:
                if wanted.keys and (key in wanted.keys or key == wanted.rule['key']):
                    self._disabled.add(wanted.rule['key'])
                    self._take(wanted)

    def figures(self) -> dict[str, list[int]]:
        """Counts of the rules that saw a call, as journalled."""
        return {key: figures.row() for key, figures in self._figures.items() if figures.calls or figures.spent}

    def seen(self) -> dict[str, tuple[str, ...]]:
        """Label patterns and metric keys that have occurred so far, by rule, as journalled."""
        return {key: tuple(sorted(figures.seen)) for key, figures in self._figures.items() if figures.seen}

    def forget_figures(self) -> None:
        """In a forked child: the parent tells its own."""
        for figures in self._figures.values():
            figures.forget()


def restore(site: Site) -> None:
    """Give a site's functions their own code back, where nobody has put other code on top of ours.

    Args:
        site: The site.
    """
    for patch in site.patches:
        patch.shut()
