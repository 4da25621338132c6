# SPDX-License-Identifier: Apache-2.0
"""The loader put in front of a named module's own: lets it do everything, then says that the module has executed.

Before the module's code runs, its spec and `__loader__` are the real ones again, so that `importlib.resources`, pickles
of the spec, `importlib.reload`, `runpy` and the module itself see what they would have seen.
"""

from __future__ import annotations

from lens_auto.record.foreign import foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


class PatchingLoader:
    """Delegates to a loader, and passes for one of its class; only `exec_module` is its own."""

    lens = True  # how stage 1 knows one of ours

    def __init__(
        self,
        name: str,
        loader: Any,
        executed: Callable[[str, ModuleType], None],
        failed: Callable[[str, BaseException], None],
    ):
        """See the class.

        Args:
            name: The module's name.
            loader: The real loader.
            executed: Called with the name and the module after its code ran.
            failed: Told of an error of ours.
        """
        self.lens_name = name
        self.lens_loader = loader
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
        self.lens_loader.exec_module(module)
        try:
            self.lens_executed(self.lens_name, module)
        except Exception as error:
            if foreign(error):
                raise
            self.lens_failed('patch', error)


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
