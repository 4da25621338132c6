# SPDX-License-Identifier: Apache-2.0
"""Runs code of ours in place of the script of `python train.py`, in an interpreter that looks as if it had not.

Before CPython runs a file it asks `sys.path_hooks` whether the file is something to import from, as a folder or a zip
archive is. Whoever answers yes has `runpy._run_module_as_main` called, in the place of which we put a call of our own.
It consists of C functions alone: the script's frame is the outermost one, as in a plain run, and no traceback, no
`inspect.stack()` and no `warnings` stack level meets a frame of ours or of `runpy`.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib_external import SourceFileLoader

from lens_auto.record.foreign import foreign
from lens_auto.record.standard import ModuleType, compiled
from lens_auto.wrap.code import REPLACE
from lens_auto.wrap.seams import Seams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder

RUNPY = 'runpy'


def importer(path: str, code: CodeType, failed: Callable[[str, BaseException], None]) -> object:
    """What a hook on `sys.path_hooks` answers for the script, so that CPython runs `code` as `__main__`.

    Args:
        path: The script, as CPython asks for it.
        code: Its code.
        failed: Told of an error of ours, with where it was.
    """
    namespace = sys.modules['__main__'].__dict__
    stand_in = ModuleType(RUNPY)
    known = sys.modules.get(RUNPY)

    def settle() -> None:
        try:
            _settle(path, namespace, known)
        except Exception as error:
            if foreign(error):
                raise
            failed('script', error)

    partial: Any = compiled('_functools').partial
    # CPython calls this with two arguments of no use here, and `format` looks only at what its fields name. Each is an
    # item that is not there, so its dict makes one: by doing the step. A plain run, too, takes the two names away when
    # the script has come to its end.
    steps = {
        'before': settle,
        'script': partial(exec, code, namespace),
        'file': partial(namespace.pop, '__file__', None),
        'cached': partial(namespace.pop, '__cached__', None),
    }
    lazily = {name: compiled('_collections').defaultdict(step) for name, step in steps.items()}
    stand_in.__dict__['_run_module_as_main'] = partial(
        '{before[done]}{script[done]}{file[done]}{cached[done]}'.format, **lazily
    )
    sys.modules[RUNPY] = stand_in
    return stand_in


def _settle(path: str, namespace: dict[str, Any], known: ModuleType | None) -> None:
    """Everything is as it is in a plain run when its script begins.

    Args:
        path: The script.
        namespace: Its globals.
        known: The `runpy` that was imported before; None if none was.
    """
    if known is None:
        sys.modules.pop(RUNPY, None)
    else:
        sys.modules[RUNPY] = known
    namespace['__file__'] = path
    namespace['__cached__'] = None
    namespace['__loader__'] = SourceFileLoader('__main__', path)
    sys.path_importer_cache[path] = None
    if sys.path and sys.path[0] == path:
        if getattr(sys.flags, 'safe_path', False):
            del sys.path[0]
        else:
            sys.path[0] = os.path.dirname(os.path.realpath(path))


class _Scripts:
    """`runpy._get_code_from_file(...)`: a child of multiprocessing runs its parent's script as `__mp_main__`."""

    __slots__ = ('_code_of',)

    def __init__(self, code_of: Callable[[str], CodeType | None]):
        self._code_of = code_of

    def after(self, args: tuple[Any, ...], result: Any) -> Any:
        """Give the code that rules make of the script.

        Args:
            args: The file is the last of them.
            result: Its code; up to Python 3.12 with its name.
        """
        code = self._code_of(os.path.abspath(args[-1]))
        if code is None:
            return result
        return (code, *result[1:]) if isinstance(result, tuple) else code


class _Modules:
    """`runpy._get_module_details(...)`: or the module that its parent runs by `-m`."""

    __slots__ = ('_code_of',)

    def __init__(self, code_of: Callable[[str, Any, bool], CodeType | None]):
        self._code_of = code_of

    def after(self, args: tuple[Any, ...], result: Any) -> Any:
        """Give the code that rules make of the module.

        Args:
            args: Of no use here.
            result: Its name, spec and code.
        """
        name, spec, _ = result
        code = self._code_of(name, spec.loader, True)
        return result if code is None else (name, spec, code)


def in_children(
    script: Callable[[str], CodeType | None],
    module: Callable[[str, Any, bool], CodeType | None],
    recorder: Recorder,
    faults: Faults,
) -> Seams:
    """What is patched of `runpy` in a child of multiprocessing.

    Args:
        script: The code to run in place of a script's own, if there is such.
        module: The same of a module, by name, loader and whether it will be `__main__`.
        recorder: The process's recorder.
        faults: Its fault count.
    """
    table = {
        RUNPY: (('_get_code_from_file', REPLACE, 'script'), ('_get_module_details', REPLACE, 'module')),
    }
    seams = Seams(RUNPY, table, {'script': _Scripts(script), 'module': _Modules(module)}, recorder, faults)
    seams.select(True)
    return seams


def skips_first_line() -> bool:
    """Whether this Python runs scripts without their first line (`-x`)."""
    for word in sys.orig_argv[1:]:
        if word[:1] != '-' or word == '-':
            return False
        if word[:2] == '--':
            continue
        for letter in word[1:]:
            if letter == 'x':
                return True
            if letter in 'mcWX':
                break
    return False
