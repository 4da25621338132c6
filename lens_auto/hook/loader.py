# SPDX-License-Identifier: Apache-2.0
"""The loader put in front of a named module's own: lets it do everything, then says that the module has executed.

Where rules change the source of a module, it executes that code in place of what the real loader has.

Before the module's code runs, its spec and `__loader__` are the real ones again, so that `importlib.resources`, pickles
of the spec, `importlib.reload`, `runpy` and the module itself see what they would have seen.
"""

from __future__ import annotations

import sys

from lens_auto.record.foreign import foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType
    from typing import Any

    CodeOf = Callable[[str, Any, bool], CodeType | None]


class PatchingLoader:
    """Delegates to a loader, and passes for one of its class; only `exec_module` and `get_code` are its own."""

    lens = True  # how stage 1 knows one of ours

    def __init__(
        self,
        name: str,
        loader: Any,
        code_of: CodeOf,
        executed: Callable[[str, ModuleType], None],
        failed: Callable[[str, BaseException], None],
    ):
        """See the class.

        Args:
            name: The module's name.
            loader: The real loader.
            code_of: Gives the code to execute in place of the loader's, if there is such; for a name, the loader, and
                whether the module will be `__main__`.
            executed: Called with the name and the module after its code ran.
            failed: Told of an error of ours.
        """
        self.lens_name = name
        self.lens_loader = loader
        self.lens_code_of = code_of
        self.lens_executed = executed
        self.lens_failed = failed

    def __getattr__(self, name: str) -> Any:
        if name.startswith('lens'):  # a copy being made, with nothing in it yet
            raise AttributeError(name)
        return getattr(self.lens_loader, name)

    # `isinstance(spec.loader, SourceFileLoader)` on a spec that was only looked up.
    __class__: Any = property(lambda self: type(self.lens_loader))  # pyright: ignore[reportUnknownLambdaType]

    def __eq__(self, other: object) -> bool:
        return self.lens_loader == getattr(other, 'lens_loader', other)

    def __hash__(self) -> int:
        return hash(self.lens_loader)

    def __repr__(self) -> str:
        return repr(self.lens_loader)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """See `importlib.abc.Loader.create_module`."""
        create = getattr(self.lens_loader, 'create_module', None)
        return None if create is None else create(spec)

    def exec_module(self, module: ModuleType) -> None:
        """See `importlib.abc.Loader.exec_module`."""
        try:
            _give_back(self.lens_loader, module)
        except Exception as error:
            if foreign(error):
                raise
            self.lens_failed('loader', error)
        code = self.lens_code(False)
        if code is None:
            self.lens_loader.exec_module(module)
        else:
            _call(exec, code, module.__dict__)
        try:
            self.lens_executed(self.lens_name, module)
        except Exception as error:
            if foreign(error):
                raise
            self.lens_failed('patch', error)

    def get_code(self, name: str) -> CodeType | None:
        """See `importlib.abc.InspectLoader.get_code`: what `runpy` asks for and runs as `__main__`."""
        code = self.lens_code(True)
        spec: Any = getattr(self, 'lens_spec', None)
        if spec is not None and _ours(spec.loader):
            spec.loader = self.lens_loader  # `__main__.__loader__` comes from there
        return self.lens_loader.get_code(name) if code is None else code

    def lens_code(self, main: bool) -> CodeType | None:
        """The code to execute in place of the loader's, or None."""
        try:
            return self.lens_code_of(self.lens_name, self.lens_loader, main)
        except Exception as error:
            if foreign(error):
                raise
            self.lens_failed('source', error)
            return None


# What it runs a module's code by, and knows by its name.
_call: Any = sys.modules['_frozen_importlib'].__dict__['_call_with_frames_removed']

# Python leaves the import system's own frames out of the traceback of a module that raises, and `warnings` out of its
# stack levels. Both know them by this name; ours is between them and would otherwise be all that shows.
PatchingLoader.exec_module.__code__ = PatchingLoader.exec_module.__code__.replace(
    co_filename='<frozen importlib._bootstrap>'
)


def _give_back(loader: Any, module: ModuleType) -> None:
    # The module's own dict, not getattr: a lazy module would load itself on being looked at.
    namespace: dict[str, Any] = object.__getattribute__(module, '__dict__')
    spec: Any = namespace.get('__spec__')
    if spec is not None and _ours(spec.loader):
        spec.loader = loader
    if _ours(namespace.get('__loader__')):
        namespace['__loader__'] = loader


def _ours(loader: Any) -> bool:
    kind: type[Any] = type(loader)  # pyright: ignore[reportUnknownVariableType]
    return getattr(kind, 'lens', False)
