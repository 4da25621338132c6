# SPDX-License-Identifier: Apache-2.0
"""`opentelemetry-instrument python train.py`: our rules, applied by that launcher and sent by the program's own SDK.

The entry point `opentelemetry_instrumentor` names `Instrumentor`. What `lens-instrument` does before it starts a
command happens here within the program: rules are compiled (from the cache, mostly), settings resolved.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any


class Instrumentor:
    """What `opentelemetry-instrument` makes of the entry point; a `BaseInstrumentor` by shape."""

    def instrument(self, **options: Any) -> None:
        """Apply the rules in this process, unless it is part of a run of `lens-instrument`.

        Args:
            options: What the launcher passes to every instrumentor; none concerns us.
        """
        if os.environ.get('LENS_PLAN_REF') or '_lens_rt' in sys.modules:
            return
        from lens_auto.bridge.in_process import InProcess
        from lens_auto.hook import activate
        from lens_auto.launch import bootstrap, plan
        from lens_auto.launch.arguments import Options
        from lens_auto.rules.plan import load
        from lens_auto.settings.project import environment
        from lens_auto.settings.resolve import resolve

        wanted = Options()
        wanted.command = list(sys.orig_argv)
        cache = bootstrap.cache_folder(os.environ)
        compiled = plan.obtain(wanted, os.environ, cache)
        resolved = resolve(
            {},
            {**os.environ, **_to_a_backend(os.environ)},
            wanted.command,
            None,
            plan.frameworks(compiled, wanted.command),
            cache,
        )
        if not resolved.value('enabled'):
            return
        finder = Finder()
        rules = load(compiled.path, compiled.sha256, str(resolved.value('vocabulary')))
        activate.begin(finder, rules, {**os.environ, **environment(resolved)}, InProcess())
        sys.meta_path.insert(0, finder)

    def uninstrument(self, **options: Any) -> None:
        """Nothing is taken back before the program ends.

        Args:
            options: As for `instrument`.
        """


def _to_a_backend(environ: Any) -> dict[str, str]:
    """Whatever the program's exporter is, the defaults are those of a run that goes to a backend."""
    return {} if environ.get('LENS_EXPORTER') else {'LENS_EXPORTER': 'otlp'}


class Finder:
    """What stage 1's finder is under `lens-instrument`, in a process where stage 2 is there from the start.

    Attributes:
        names: The modules to hook.
        loader: Makes the loader that goes in front of a module's own.
        main: None: what runs as `__main__` is not reached.
        script: Not asked.
    """

    def __init__(self) -> None:
        """Nothing to hook yet."""
        self.names: frozenset[str] = frozenset()
        self.loader: Any = None
        self.main: frozenset[str] = frozenset()
        self.script: Any = None
        self._asking: set[tuple[str, int]] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder.find_spec`."""
        if name not in self.names:
            return None
        spec: Any = self.ask(name, path, target)
        real: Any = getattr(spec, 'loader', None)
        if spec is not None and hasattr(real, 'exec_module') and not _is_ours(real):
            loader = self.loader(self, name, real)
            if _is_ours(loader):
                loader.lens_spec = spec
                spec.loader = loader
        return spec

    def ask(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """What the other finders say; by hand over `sys.meta_path`, see stage 1.

        Args:
            name: The module.
            path: Where its package lies.
            target: For a reload.
        """
        from _thread import get_ident

        question = name, get_ident()
        if question in self._asking:
            return None
        self._asking.add(question)
        try:
            for finder in list(sys.meta_path):
                find = None if finder is self else getattr(finder, 'find_spec', None)
                spec = None if find is None else find(name, path, target)
                if spec is not None:
                    return spec
        finally:
            self._asking.discard(question)
        return None


def _is_ours(loader: Any) -> bool:
    kind: type[Any] = type(loader)  # pyright: ignore[reportUnknownVariableType]
    return bool(getattr(kind, 'lens', False))
