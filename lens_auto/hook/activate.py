# SPDX-License-Identifier: Apache-2.0
"""Starts stage 2 in a process: plan and settings from the environment, then patches as modules execute."""

from __future__ import annotations

import atexit
import os
import sys

from lens_auto.hook.loader import PatchingLoader
from lens_auto.hook.patches import Patches
from lens_auto.record import recorder as recording
from lens_auto.record.fault import Faults
from lens_auto.record.foreign import foreign
from lens_auto.record.format import FAULT, SEEN, SETTINGS, STATS
from lens_auto.record.ranks import own
from lens_auto.rules import plan as plans
from lens_auto.rules.selection import UnknownGroup, select_all
from lens_auto.settings import exports, project
from lens_auto.settings.fields import BY_NAME, LENS, text
from lens_auto.wrap.by_hand import ByHand
from lens_auto.wrap.runtime import Runtime
from lens_auto.wrap.threads import SEAMS as THREADS
from lens_auto.wrap.threads import threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from lens_auto.ray.seams import Ray
    from lens_auto.settings.fields import Value

_STATS_EVERY_NS = 1_000_000_000


class Activation:
    """The agent of this process: recorder, runtime, patches and what the settings say of them.

    Attributes:
        names: Modules the finder shall tell about.
    """

    def __init__(self, plan: dict[str, Any], environ: Any, importable: Callable[[str], bool]):
        """See the class.

        Args:
            plan: The compiled plan.
            environ: `os.environ`.
            importable: Says whether a module can be found, without importing it.
        """
        self._plan = plan
        self._provisional = project.provisional(environ)
        self._values: dict[str, Value] = project.from_environment(environ)
        self._recorder = recording.start(environ)
        self._faults = Faults(self._recorder.report)
        self._runtime = Runtime(self._faults, self._disable)
        self._by_hand = self._runtime.module.__dict__['by_hand'] = ByHand(self._recorder, self._faults)
        self._patches = Patches(plan, self._recorder, self._faults, self._runtime, self._resettle, importable)
        self.names = frozenset(self._patches.modules()) | {'torch'} | frozenset(plans.RAY_MODULES)
        self._threads = threads(self._recorder, self._faults)
        self.names |= frozenset(THREADS)
        self._ray: Ray | None = None
        self._records = False
        self._unseen = set(self.names)
        self._seen: dict[str, tuple[str, ...]] = {}
        self._apply()
        self._recorder.on_close(self._tell, _STATS_EVERY_NS)
        atexit.register(self._tell)
        os.register_at_fork(after_in_child=self._patches.forget_figures)

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
        self._patches.select(
            groups,
            traces=on and bool(values['traces_enabled']),
            metrics=on and bool(values['metrics_enabled']),
            resources=on or bool(self._provisional),
        )
        self._records = on and bool(values['traces_enabled'])
        self._threads.select(self._records)
        if self._ray is not None:
            self._ray.select(self._records)
        self._by_hand.traces = on and bool(values['traces_enabled'])
        self._by_hand.metrics = on and bool(values['metrics_enabled'])
        if on:
            self._runtime.install()
        else:
            # Rules that read the run's config must still be heard: it may yet switch us on.
            (self._runtime.install if self._provisional and not values['enabled'] else self._runtime.remove)()

    def loader(self, finder: Any, name: str, loader: Any) -> Any:
        """What goes in front of a named module's own loader.

        Args:
            finder: Stage 1's finder.
            name: The module's name.
            loader: Its loader.
        """
        try:
            return PatchingLoader(name, loader, self.executed, self.failed)
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
        if name == 'torch':
            self._runtime.is_compiling = _torch_is_compiling(module)
        self._threads.executed(name, module)
        if name in plans.RAY_MODULES:
            self._known_ray().executed(name, module)
        self._patches.module(name, module)
        self.catch_up()

    def _known_ray(self) -> Ray:
        """What we know of Ray, from the first of its modules on."""
        if self._ray is None:
            from lens_auto.ray.seams import Ray

            sites, loaded = self._runtime.sites, self._patches.loaded
            self._ray = Ray(self._recorder, self._faults, sites, loaded, self._apply, os.environ)
            self._patches.knows(self._ray.tasks)
            self._ray.select(self._records)
        return self._ray

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


def _importable(finder: Any, name: str) -> bool:
    if name in sys.modules:
        return True
    first, *parts = name.split('.')
    spec = finder.ask(first)
    if spec is None:
        return False
    # By hand from here: to find a module in a package, finders want that imported (namespace packages do).
    folders = list(spec.submodule_search_locations or ())
    for number, part in enumerate(parts, 1):
        if number == len(parts) and any(os.path.isfile(f'{folder}/{part}.py') for folder in folders):
            return True
        folders = [f'{folder}/{part}' for folder in folders if os.path.isdir(f'{folder}/{part}')]
        if not folders:
            return False
    return True


def start(finder: Any) -> None:
    """Load the plan and patch from here on.

    Args:
        finder: Stage 1's finder: gets the modules the plan names, and our loader.

    Raises:
        PlanError, KeyError, ValueError, OSError: This process stands down; stage 1 notes the reason.
    """
    path, _, digest = os.environ['LENS_PLAN_REF'].rpartition('#')
    activation = Activation(
        plans.load(path, digest, os.environ.get('LENS_VOCABULARY', '')),
        os.environ,
        lambda name: _importable(finder, name),
    )
    finder.names = activation.names | {'lens_auto'}
    finder.loader = activation.loader
    activation.catch_up()
