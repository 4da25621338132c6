# SPDX-License-Identifier: Apache-2.0
"""An object of ours in the place of a function of the interpreter's, whose code cannot be changed.

It looks like the function to all who ask (`isinstance`, `inspect`, `pickle`, comparison, `repr`); its `type()` tells,
and `is` with the function from before. A module that has taken the function by `from os import ...` earlier keeps it.
"""

from __future__ import annotations

import sys

from lens_auto.record.standard import BuiltinFunctionType
from lens_auto.wrap.code import Unwrappable
from lens_auto.wrap.delegated import unseen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

IN_PLACE = 'in place'  # of a function of the interpreter's


class Builtin:
    """What stands there. No descriptor, like the function: as an attribute of a class it is not bound."""

    __slots__ = ('_after', '_before', '_original')

    def __init__(self, original: Any, before: Callable[..., Any], after: Callable[..., Any]):
        """See the class.

        Args:
            original: The function.
            before: Given the function, its arguments and keywords; answers with what is called instead of it and with
                which arguments and keywords, or None.
            after: Given the arguments and the result, or, as a call that failed, the arguments and None.
        """
        self._original = original
        self._before = before
        self._after = after

    def __call__(self, /, *args: Any, **keywords: Any) -> Any:
        """Call the function, or what takes its place this time."""
        given = self._before((self._original, args, keywords))
        function, args, keywords = (self._original, args, keywords) if given is None else given
        try:
            result = function(*args, **keywords)
        except:
            self._after(args, None)
            unseen()
            raise
        self._after(args, result)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return BuiltinFunctionType

    @property
    def __doc__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._original.__doc__

    @property
    def __module__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._original.__module__

    def __repr__(self) -> str:
        return repr(self._original)

    def __eq__(self, other: object) -> Any:
        return self._original == (other._original if type(other) is Builtin else other)

    def __hash__(self) -> int:
        return hash(self._original)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._original.__reduce_ex__(protocol)


class Placed:
    """One function of the interpreter's with an object of ours in its place, wherever its module is known by."""

    __slots__ = ('_modules', '_name', '_original', '_ours')

    def __init__(self, module: ModuleType, name: str, before: Callable[..., Any], after: Callable[..., Any]):
        """Put it there.

        Args:
            module: Where the program finds the function.
            name: Its name there.
            before: See `Builtin`.
            after: See `Builtin`.

        Raises:
            Unwrappable: There is no such function; nothing has changed.
        """
        original = module.__dict__.get(name)
        if type(original) is not BuiltinFunctionType:
            raise Unwrappable("it is not the interpreter's own")
        # In the module it comes from as well: by that it is pickled.
        home: Any = sys.modules.get(original.__module__ or '')
        self._modules = [each for each in (module, home) if getattr(each, '__dict__', {}).get(name) is original]
        self._name = name
        self._original = original
        self._ours = Builtin(original, before, after)
        for each in self._modules:
            setattr(each, name, self._ours)

    def shut(self) -> None:
        """Put the function back, unless somebody else has put something there since."""
        for each in self._modules:
            if each.__dict__.get(self._name) is self._ours:
                setattr(each, self._name, self._original)
