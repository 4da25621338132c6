# SPDX-License-Identifier: Apache-2.0
"""Starts stage 2 in a process: plan and settings from the environment, then patches as modules execute."""

from __future__ import annotations

import atexit
import os
import sys

from lens_auto.hook.importable import Importable
from lens_auto.hook.loader import PatchingLoader
from lens_auto.hook.patches import Patches
from lens_auto.hook.shown import BOUND
from lens_auto.hook.written import file_of
from lens_auto.record import recorder as recording
from lens_auto.record.fault import Faults
from lens_auto.record.foreign import foreign
from lens_auto.record.format import FAULT, SEEN, SETTINGS, STATS
from lens_auto.record.ranks import own
from lens_auto.record.starter import taken
from lens_auto.rules import plan as plans
from lens_auto.rules.selection import UnknownGroup, select_all
from lens_auto.settings import exports, project
from lens_auto.settings.fields import BY_NAME, LENS, text
from lens_auto.wrap.by_hand import ByHand
from lens_auto.wrap.children import SEAMS as CHILDREN
from lens_auto.wrap.children import children, of_multiprocessing
from lens_auto.wrap.logs import MODULE as LOGGING
from lens_auto.wrap.logs import LogSeams
from lens_auto.wrap.runtime import Runtime
from lens_auto.wrap.threads import SEAMS as THREADS
from lens_auto.wrap.threads import threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType
    from typing import Any

    from lens_auto.bridge.seams import Bridge
    from lens_auto.ray.seams import Ray
    from lens_auto.record.recorder import Recorder
    from lens_auto.settings.fields import Value

_STATS_EVERY_NS = 1_000_000_000
_TRACE = 'opentelemetry.trace'


class Activation:
    """The agent of this process: recorder, runtime, patches and what the settings say of them.

    Attributes:
        names: Modules the finder shall tell about.
    """

    def __init__(self, plan: dict[str, Any], environ: Any, importable: Importable, recorder: Recorder | None = None):
        """See the class.

        Args:
            plan: The compiled plan.
            environ: `os.environ`.
            importable: Says whether a module can be found, without importing it.
            recorder: What records, if not into a journal.
        """
        plan = self._plan = {**plan, 'files': [*plan['files'], file_of(plan['files'])]}
        self._provisional = project.provisional(environ)
        self._values: dict[str, Value] = project.from_environment(environ)
        self._importable = importable
        self._recorder = recorder or recording.start(environ)
        self._faults = Faults(self._recorder.report)
        self._runtime = Runtime(self._faults, self._disable)
        self._by_hand = self._runtime.module.__dict__['by_hand'] = ByHand(self._recorder, self._faults)
        cache = environ.get('LENS_CACHE', '')
        self._patches = Patches(
            *(plan, self._recorder, self._faults, self._runtime, self._resettle, importable),
            os.path.join(cache, 'rewritten') if cache.startswith('/') else '',
        )
        self._in_source = self._runtime.module.__dict__['source'] = self._patches.with_source(self._apply)
        self.names = frozenset(self._patches.modules()) | {'torch'} | frozenset(plans.RAY_MODULES)
        self._threads = threads(self._recorder, self._faults)
        self.names |= frozenset(THREADS) | frozenset(plans.OTEL_MODULES)
        self._bridge: Bridge | None = None
        self._before_bridge: dict[str, ModuleType] = {}
        self._logs = LogSeams(self._recorder, self._faults)
        self.names |= {LOGGING}
        self._children = children(self._recorder, self._faults)
        self.names |= frozenset(CHILDREN)
        self._starter = taken()
        self._recorder.started = self._started
        self._ray: Ray | None = None
        self._records = False
        self._unseen = set(self.names)
        self._seen: dict[str, tuple[str, ...]] = {}
        self._apply()
        self._recorder.on_close(self._tell, _STATS_EVERY_NS)
        atexit.register(self._tell)
        os.register_at_fork(after_in_child=self._patches.forget_figures)
        os.register_at_fork(after_in_child=self._logs.logs.forget)

    def _apply(self) -> None:
        """Decide by the settings which rules are on here, and patch or unpatch accordingly."""
        values = self._values
        on = bool(values['enabled']) and exports.exports(values, own(os.environ))
        try:
            groups = select_all(str(values['span_groups']), self._plan['files'])
        except UnknownGroup as unknown:
            # The launcher refuses such a spec; here it can only come from the run's own config, built later.
            self._recorder.report(
                FAULT, {'key': '', 'where': 'span_groups', 'type': unknown.token, 'frames': '', 'count': 1}
            )
            groups = select_all('default', self._plan['files'])
        self._patches.trace_engines(bool(values['vllm_native_tracing']))
        self._patches.select(
            groups,
            traces=on and bool(values['traces_enabled']),
            metrics=on and bool(values['metrics_enabled']),
            resources=on or bool(self._provisional),
        )
        self._records = on and bool(values['traces_enabled'])
        self._threads.select(self._records)
        self._children.select(self._records)
        self._logs.settle(on and bool(values['logs_enabled']), bool(values['log_bodies']))
        if self._ray is not None:
            self._ray.select(self._records)
        self._by_hand.traces = on and bool(values['traces_enabled'])
        self._by_hand.metrics = on and bool(values['metrics_enabled'])
        self._select_bridge()
        if on:
            self._runtime.install()
        else:
            # Rules that read the run's config must still be heard: it may yet switch us on.
            (self._runtime.install if self._provisional and not values['enabled'] else self._runtime.remove)()
        if self._patches.rewrites:
            self._runtime.places.make = self._patches.place
            (self._runtime.places.install if on else self._runtime.places.remove)()

    def loader(self, finder: Any, name: str, loader: Any) -> Any:
        """What goes in front of a named module's own loader.

        Args:
            finder: Stage 1's finder.
            name: The module's name.
            loader: Its loader.
        """
        try:
            return PatchingLoader(name, loader, self._code_of, self.executed, self.failed)
        except Exception as error:
            if foreign(error):
                raise
            self.failed('finder', error)
            return loader

    def executed(self, name: str, module: ModuleType) -> None:
        """A named module has executed: patch what the rules name in it.

        Args:
            name: Its name.
            module: The module.
        """
        self._unseen.discard(name)
        if name == 'runpy':
            self._child(name, module)
            return
        if name == 'torch':
            self._runtime.is_compiling = _torch_is_compiling(module)
        self._threads.executed(name, module)
        self._children.executed(name, module)
        self._logs.executed(name, module)
        if name in plans.RAY_MODULES:
            self._known_ray().executed(name, module)
        if name in plans.OTEL_MODULES:
            self._opentelemetry(name, module)
        self._patches.module(name, module)
        self.catch_up()

    def script(self, path: str) -> object:
        """What CPython runs the script by, see `script.importer`.

        Args:
            path: The script, as CPython asks for it.

        Raises:
            ImportError: Python runs it best as ever.
        """
        from lens_auto.hook.script import importer, skips_first_line

        code = self._run(path, skips_first_line())
        if code is None:
            raise ImportError(path)
        try:
            return importer(path, code, self.failed)
        except Exception as error:
            if foreign(error):
                raise
            self.failed('script', error)
            raise ImportError(path) from None

    def _child(self, name: str, module: ModuleType) -> None:
        """This process is a child of multiprocessing, and has what it runs its parent's program by."""
        from lens_auto.hook.script import in_children

        in_children(self._run, self._code_of, self._recorder, self._faults).executed(name, module)

    def _run(self, path: str, without_first_line: bool = False) -> CodeType | None:
        """The code to run in place of a file's own; an error of ours comes to nothing."""
        try:
            sys.modules['builtins'].__dict__[BOUND] = self._bound
            if not getattr(sys.flags, 'safe_path', False):
                self._importable.beside = os.path.dirname(os.path.realpath(path))
                self._patches.ask_again()
            return self._patches.sources.of_script(path, without_first_line)
        except OSError as error:
            if foreign(error):
                raise
            return None  # Python is about to say that it cannot read it
        except Exception as error:
            if foreign(error):
                raise
            self.failed('source', error)
            return None
        finally:
            self._importable.beside = ''

    def _code_of(self, name: str, loader: Any, main: bool) -> CodeType | None:
        if main:
            sys.modules['builtins'].__dict__[BOUND] = self._bound
            return self._patches.sources.of_main(name, loader)
        return self._patches.sources.of_module(name, loader) if self._patches.changes(name) else None

    def _bound(self, name: str) -> None:
        """The program that this process runs has bound a name that rules mention."""
        try:
            self._patches.sources.bound(name, sys._getframe(1).f_globals)  # pyright: ignore[reportPrivateUsage]
        except Exception as error:
            if foreign(error):
                raise
            self.failed('patch', error)

    def _known_ray(self) -> Ray:
        """What we know of Ray, from the first of its modules on."""
        if self._ray is None:
            from lens_auto.ray.seams import Ray

            sites, loaded = self._runtime.sites, self._patches.loaded
            self._ray = Ray(self._recorder, self._faults, sites, loaded, self._apply, os.environ)
            self._patches.knows(self._ray.tasks)
            self._ray.select(self._records)
        return self._ray

    def _started(self) -> tuple[bytes, bytes] | None:
        """The span that this process was started under."""
        return of_multiprocessing() or self._starter

    def _opentelemetry(self, name: str, module: ModuleType) -> None:
        """A module of the program's own OpenTelemetry has executed.

        Ours stands on `opentelemetry.trace`, which is not imported for it: in the middle of another of its modules that
        would run in a circle, and the program may never want it.
        """
        if self._bridge is None:
            self._before_bridge[name] = module
            trace = sys.modules.get(_TRACE)
            if name != _TRACE and (trace is None or _importing(trace)):
                return
            from lens_auto.bridge.seams import Bridge

            self._bridge = Bridge(self._recorder, self._faults, self._patches.records, self._patches.begun)
            self._select_bridge()
            for earlier, executed in self._before_bridge.items():
                self._bridge.executed(earlier, executed)
            self._before_bridge.clear()
            return
        self._bridge.executed(name, module)

    def _select_bridge(self) -> None:
        if self._bridge is not None:
            joins = str(self._values['exporter']) == 'otlp'
            self._bridge.select(self._by_hand.traces, self._by_hand.metrics, joins)

    def failed(self, where: str, error: BaseException) -> None:
        """An error of ours while importing: counted, journalled once, the import goes on.

        Args:
            where: The part.
            error: What was raised.
        """
        self._faults.take(where, '', error)

    def catch_up(self) -> None:
        """Patch named modules that came in without us: imported before, or by a finder in front of ours."""
        for name in list(self._unseen):
            module = sys.modules.get(name)
            if module is None or name not in self._unseen:
                continue
            try:
                if not _importing(module):
                    self.executed(name, module)
                elif name == 'torch':
                    self._runtime.is_compiling = _late_is_compiling(module)
            except Exception as error:
                if foreign(error):
                    self._unseen.add(name)
                    raise
                self.failed('patch', error)
                self._unseen.discard(name)

    def _disable(self, key: str) -> None:
        try:
            self._patches.disable(key)
            self._in_source.disable(key)
        except Exception as error:
            if foreign(error):
                raise
            self.failed('disable', error)

    def _resettle(self, block: Any) -> None:
        """A `resource` rule has seen the run's own `telemetry:` block: settle the settings anew, also for children."""
        values = project.override(self._values, self._provisional, block)
        native = self._patches.config_says(project.enabled(block))
        if values == self._values:
            if native:
                self._apply()
            return
        changed = {name: value for name, value in values.items() if value != self._values[name]}
        self._values = values
        for name, value in changed.items():
            os.environ[LENS + BY_NAME[name].suffix] = text(value)
        self._recorder.report(SETTINGS, dict(changed))
        self._apply()

    def _tell(self) -> None:
        try:
            figures = self._patches.figures()
            if figures:
                self._recorder.report(STATS, figures)
            seen = self._patches.seen()
            if seen != self._seen:
                self._seen = seen
                self._recorder.report(SEEN, seen)
            self._logs.logs.tell()
        except Exception as error:
            if foreign(error):
                raise
            self.failed('figures', error)


def _importing(module: Any) -> bool:
    """True while a module's code has not run to its end, or (a lazy module nobody has looked at) not begun."""
    if type(module).__module__ == 'importlib.util':
        return True
    # Its own dict: a lazy module would load itself on being asked for its spec.
    return getattr(object.__getattribute__(module, '__dict__').get('__spec__'), '_initializing', False)


def _torch_is_compiling(torch: Any) -> Any:
    compiler = getattr(torch, 'compiler', None)
    return getattr(compiler, 'is_compiling', None) or getattr(getattr(torch, '_utils', None), 'is_compiling', bool)


def _late_is_compiling(torch: Any) -> Callable[[], bool]:
    """For a torch that another module's import is in the middle of importing, so that nobody tells us of its end."""
    return lambda: getattr(getattr(torch, 'compiler', None), 'is_compiling', bool)()


def start(finder: Any) -> None:
    """Load the plan and patch from here on.

    Args:
        finder: Stage 1's finder: gets the modules the plan names, and our loader.

    Raises:
        PlanError, KeyError, ValueError, OSError: This process stands down; stage 1 notes the reason.
    """
    path, _, digest = os.environ['LENS_PLAN_REF'].rpartition('#')
    begin(finder, plans.load(path, digest, os.environ.get('LENS_VOCABULARY', '')), os.environ, None)


def begin(finder: Any, plan: dict[str, Any], environ: Any, recorder: Recorder | None) -> None:
    """Patch from here on.

    Args:
        finder: See `start`.
        plan: The compiled plan.
        environ: The process's environment, with the settings in it.
        recorder: See `Activation`.
    """
    activation = Activation(plan, environ, Importable(finder), recorder)
    finder.names = activation.names | finder.main | {'lens_auto'}
    finder.loader = activation.loader
    finder.script = activation.script
    activation.catch_up()
