# SPDX-License-Identifier: Apache-2.0
"""Reads one local of a caller's frame, and leaves no trace of having looked.

Before Python 3.13 `frame.f_locals` is a dict that the frame keeps, with a reference to every local: a batch the caller
deletes would live on in it. So the dict is emptied again, unless somebody else holds it (the caller's own `locals()`
gave out the very same dict) or a debugger is at work in that frame.
"""

from __future__ import annotations

import sys

from lens_auto.record.standard import CodeType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

OPTIMIZED = 0x1  # CO_OPTIMIZED: the code of a function; a module's or class body's locals are its namespace itself
# References to a snapshot nobody but its frame holds: the frame's, our variable's, the argument's of getrefcount.
UNSHARED = 3
FARTHEST = 12
# Numbers of bytecode operations before 3.13. CACHE entries follow operations from 3.11 on; 3.10 has no operation 0.
# What loads a constant, a global, a local or a cell:
_CACHE, _LOAD_GLOBAL, _EXTENDED_ARG = 0, 116, 144
_LOADS = {(3, 10): (100, 116, 124, 136), (3, 11): (2, 100, 116, 124, 137), (3, 12): (2, 100, 116, 124, 127, 137)}
_alone: dict[CodeType, bool] = {}


def local(frame: FrameType, name: str) -> Any:
    """The value of a local (or, failing that, global) name in a frame.

    Args:
        frame: A frame further up this thread's stack.
        name: The variable.

    Raises:
        KeyError: There is no such name.
    """
    code = frame.f_code
    if not code.co_flags & OPTIMIZED:
        return frame.f_locals[name] if name in frame.f_locals else frame.f_globals[name]
    if name not in code.co_varnames and name not in code.co_cellvars and name not in code.co_freevars:
        return frame.f_globals[name]
    if sys.version_info >= (3, 13):
        return frame.f_locals[name]
    if 'locals' in code.co_names or ('vars' in code.co_names and _may_call_vars_alone(code)):
        # It may have kept the dict that `locals()` gave it, which is the one we would bring up to date by looking.
        raise KeyError(name)
    return _read_and_clear(frame, name)


def locals_of(frame: FrameType, names: tuple[str, ...]) -> tuple[Any, ...]:
    """The values of parameters in the frame of a function that has just begun.

    Args:
        frame: A frame further up this thread's stack.
        names: The parameters.

    Raises:
        KeyError: They cannot be read without changing what the function sees.
    """
    code = frame.f_code
    if sys.version_info >= (3, 13):
        values = frame.f_locals
        return tuple([values[name] for name in names])
    if 'locals' in code.co_names or ('vars' in code.co_names and _may_call_vars_alone(code)):
        raise KeyError('locals')
    snapshot = frame.f_locals
    try:
        return tuple([snapshot[name] for name in names])
    finally:
        if sys.getrefcount(snapshot) <= UNSHARED and frame.f_trace is None:
            snapshot.clear()


def _may_call_vars_alone(code: CodeType) -> bool:
    """Whether code may call `vars()`, which gives the locals, and not only `vars(something)`.

    Read off the bytecode: what follows the loading of `vars` loads its argument, or else it may be anything.
    """
    known = _alone.get(code)
    if known is None:
        loads = _LOADS[sys.version_info[:2]]
        names = [index for index, name in enumerate(code.co_names) if name == 'vars']
        known, after, extended = False, False, 0
        for at in range(0, len(code.co_code), 2):
            operation, argument = code.co_code[at], code.co_code[at + 1] | extended << 8
            extended = argument if operation == _EXTENDED_ARG else 0
            if operation in (_CACHE, _EXTENDED_ARG):
                continue
            known = known or (after and operation not in loads)
            index = argument >> 1 if sys.version_info >= (3, 11) else argument
            after = operation == _LOAD_GLOBAL and index in names
        _alone[code] = known
    return known


def _read_and_clear(frame: FrameType, name: str) -> Any:
    snapshot = frame.f_locals
    try:
        return snapshot[name]
    finally:
        if sys.getrefcount(snapshot) <= UNSHARED and frame.f_trace is None:
            snapshot.clear()


def caller(frame: FrameType, passing: frozenset[tuple[str, str]]) -> FrameType:
    """The nearest frame from `frame` outward that does not just pass the call on, or the outermost one looked at.

    Args:
        frame: Where to start.
        passing: (module, function name) of code that only passes a call on: a timer's own methods. contextlib does.
    """
    for _ in range(FARTHEST):
        if not passes(frame, passing) or frame.f_back is None:
            return frame
        frame = frame.f_back
    return frame


def called_from(frame: FrameType | None, codes: list[CodeType], passing: frozenset[tuple[str, str]]) -> bool:
    """True when a function was called by one of a rule's own, directly or through code that only passes the call on.

    Args:
        frame: The function's.
        codes: Original code of the functions in question.
        passing: See `caller`.
    """
    for _ in range(FARTHEST):
        frame = frame.f_back if frame is not None else None
        if frame is None:
            return False
        if frame.f_code in codes:
            return True
        if not passes(frame, passing):
            return False
    return False


def passes(frame: FrameType, passing: frozenset[tuple[str, str]]) -> bool:
    """True when a frame only passes a call on.

    Args:
        frame: A frame.
        passing: See `caller`.
    """
    module = frame.f_globals.get('__name__')
    return module == 'contextlib' or (module, frame.f_code.co_name) in passing
