# SPDX-License-Identifier: Apache-2.0
"""Runs programs with a span at every place there is, in any interpreter: `python rewriting.py MODE PROGRAM...`.

MODE is `plain`, `recorded` (rewritten, spans are recorded) or `absent` (rewritten, in a process without us). Each
program runs as a module of its own, once as it is and once traced line by line. The answer is JSON: what each of them
printed, which lines were traced, and which spans it made.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if __name__ == '__main__':
    sys.path.insert(0, str(ROOT))

from lens_auto.record.span import current  # noqa: E402
from lens_auto.rewrite.edit import Rewritten, rewrite  # noqa: E402
from lens_auto.rewrite.nodes import module_of  # noqa: E402
from lens_auto.rewrite.pattern import parse  # noqa: E402
from lens_auto.rewrite.places import Wanted  # noqa: E402
from lens_auto.rewrite.scopes import scopes  # noqa: E402
from tests.helpers.place_recording import Recording  # noqa: E402

PATTERNS = {
    'loop': ('for $_ in $_:', 'async for $_ in $_:', 'while $_:'),
    'block': ('with $$$:', 'async with $$$:'),
    'call': ('$_($$$)',),
    'function': (None,),
}
KINDS = tuple(PATTERNS)


def everything(source: bytes | str, kinds: tuple[str, ...] = KINDS) -> list[Wanted]:
    """A rule for each place of a module.

    Args:
        source: The module's source.
        kinds: Of these kinds only.
    """
    names = dict.fromkeys(scope.qualname for scope in scopes(module_of(source, '<names>')))
    patterns = [(kind, None if text is None else parse(kind, text)) for kind in kinds for text in PATTERNS[kind]]
    return [
        Wanted(kind, kind, name, pattern, (0, None), True)
        for kind, pattern in patterns
        for name in names
        if pattern is not None or name
    ]


def edited(source: bytes, path: str, kinds: tuple[str, ...] = KINDS, optimize: int = -1) -> Rewritten:
    """A module with a span at each place."""
    return rewrite(source, path, everything(source, kinds), optimize)


def run(path: Path, code: Any, traced: bool) -> dict[str, Any]:
    """Execute a program as a module; what it printed, and the lines traced in its file."""
    name = path.stem
    module = ModuleType(name)
    module.__dict__['__file__'] = str(path)
    sys.modules[name] = module
    out = io.StringIO()
    lines: list[str] = []

    def trace(frame: Any, event: str, given: Any) -> Any:
        if frame.f_code.co_filename != str(path) or 'enter' in frame.f_code.co_freevars:
            return None
        lines.append(f'{event} {frame.f_code.co_name} {frame.f_lineno}')
        return trace

    with contextlib.redirect_stdout(out):
        try:
            if traced:
                sys.settrace(trace)
            exec(code, module.__dict__)
        except BaseException as error:
            sys.settrace(None)
            print(f'left with {type(error).__name__}: {error}')
        finally:
            sys.settrace(None)
    printed = out.getvalue()
    with contextlib.redirect_stdout(out):
        module.__dict__.clear()
        gc.collect()  # what it left suspended ends here
    return {'printed': printed, 'lines': lines}


def main(mode: str, kinds: str, *paths: str) -> None:
    """See the module."""
    answers: dict[str, Any] = {}
    recording = Recording() if mode == 'recorded' else None
    for name in paths:
        path = Path(name)
        source = path.read_bytes()
        found: list[Any] = []
        if mode == 'plain':
            code = compile(source, name, 'exec', dont_inherit=True)
        else:
            done = edited(source, name, tuple(kinds.split(',')))
            code = done.code
            found = [place.lineno for each in done.found for place in each.places]
        answer = run(path, code, False)
        answer['lines'] = run(path, code, True)['lines']
        answer['places'] = len(found)
        if recording is not None:
            begun, ended = recording.spans()
            answer['spans'] = [begun, ended]
            answer['current'] = current.get() is None
            answer['faults'] = recording.faults[:]
            recording.journal.records.clear()
        answers[path.stem] = answer
    print(json.dumps(answers), flush=True)
    os._exit(0)  # what the programs left behind may print as it goes


if __name__ == '__main__':
    main(*sys.argv[1:])
