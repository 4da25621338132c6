# SPDX-License-Identifier: Apache-2.0
"""A function rule put around a function's code (`apply: wrap`) against one in its source (`apply: rewrite`).

Prints, for each Python found, what a call costs and what the function and its callers can tell of it, and what the
kinds cost that are in the source alone: a loop's iteration, a block, a call. The figures behind the defaults in
docs/benchmarks.md.
"""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
import tempfile
import textwrap
import time
import weakref
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from lens_auto.rewrite.edit import rewrite  # noqa: E402
from lens_auto.rewrite.pattern import parse  # noqa: E402
from lens_auto.rewrite.places import Wanted  # noqa: E402
from lens_auto.wrap.code import AROUND, Patch, Signature  # noqa: E402
from lens_auto.wrap.place_site import PlaceSite  # noqa: E402
from lens_auto.wrap.readers import Readers  # noqa: E402
from lens_auto.wrap.site import Site  # noqa: E402
from tests.helpers.place_recording import Recording, rule  # noqa: E402

SOURCE = textwrap.dedent("""
    import sys
    def step(self, n): return n
    def above(self, n): return sys._getframe(1).f_code.co_name
    def deep(self, n):
        try: return deep(self, n + 1)
        except RecursionError: return n
    def frees(self, n):
        del n
        return self()
    def fails(self, n): return 1 / n
    def tensor(self, n): return n * 2 + 1
    async def coroutine(self, n): return n
    def loop(self, n):
        for each in (n,): pass
    def block(self, n):
        with nothing: return n
    def call(self, n): return step(self, n)
    class Nothing:
        def __enter__(self): return self
        def __exit__(self, *error): return None
    nothing = Nothing()
""").encode()
NAMES = ('step', 'above', 'deep', 'frees', 'fails', 'tensor', 'coroutine')
PLACES = {'loop': 'for each in $_:', 'block': 'with nothing:', 'call': 'step($$$)'}
CALLS, ROUNDS = 2_000, 40


class Batch:
    """Something whose end can be seen."""


def _place(kind: str) -> Wanted:
    return Wanted('k', kind, kind, parse(kind, PLACES[kind]))


def made(how: str, attributes: dict[str, Any], recording: Recording, kind: str | None = None) -> dict[str, Any]:
    """The functions, with their rule applied in one way; to rewrite, with a rule on a place of this kind alone."""
    module = ModuleType('measured')
    sys.modules['measured'] = module
    with tempfile.NamedTemporaryFile('wb', suffix='.py', delete=False) as file:
        file.write(SOURCE)
    one = rule('k', kind or 'function', attributes=attributes)
    recorder, faults = recording.recorder, recording.runtime._faults
    if how == 'rewrite':
        wanted = [Wanted('k', 'function', name, None) for name in NAMES]
        done = rewrite(SOURCE, file.name, wanted if kind is None else [_place(kind)])
        recording.runtime.places.forget()
        recording.runtime.places.make = lambda key: PlaceSite(one, key, {}, recording.figures, recorder, faults)
        exec(done.code, module.__dict__)
        return module.__dict__
    exec(compile(SOURCE, file.name, 'exec'), module.__dict__)
    for name in NAMES if how == 'wrap' else ():
        function = module.__dict__[name]
        readers = Readers(one, None, None, Signature(function.__code__), {})
        recording.runtime.sites[name] = Site(one, readers, recording.figures, recorder, faults)
        Patch(function, name, AROUND)
    return module.__dict__


def nanoseconds(function: Any) -> float:
    """What a call takes of the processor, at best."""
    best = float('inf')
    for _ in range(ROUNDS):
        begun = time.thread_time_ns()
        for _ in range(CALLS):
            function(None, 1)
        best = min(best, (time.thread_time_ns() - begun) / CALLS)
    return best


def awaited(function: Any) -> Any:
    """A function that runs a coroutine to its end."""

    def run(self: Any, n: int) -> None:
        try:
            function(self, n).send(None)
        except StopIteration:
            return

    return run


def fullgraph(function: Any) -> str:
    """Whether torch compiles it without a break."""
    try:
        import torch
    except ImportError:
        return '-'
    try:
        torch.compile(lambda t: function(None, t), fullgraph=True, backend='eager')(torch.ones(2))
    except Exception as error:
        return type(error).__name__
    return 'yes'


def is_compiling() -> Any:
    """What a hook on torch rebinds the runtime's question to."""
    try:
        import torch
    except ImportError:
        return bool
    return torch.compiler.is_compiling


def row(how: str) -> list[str]:
    """One way's answers."""
    recording = Recording()
    recording.journal.put = lambda record, span=None: None if span is None else setattr(span, 'epoch', -1)
    recording.runtime.is_compiling = is_compiling()
    functions = made(how, {}, recording)
    plain = nanoseconds(functions['step'])
    coroutine = nanoseconds(awaited(functions['coroutine']))
    above = functions['above'](None, 0)
    depth = functions['deep'](None, 0)
    batch = Batch()
    alive = weakref.ref(batch)
    held = [batch]
    del batch
    freed = functions['frees'](lambda: alive() is None, held.pop())
    frames = 0
    try:
        functions['fails'](None, 0)
    except ZeroDivisionError as error:
        trace = error.__traceback__
        while trace is not None:
            frames, trace = frames + 1, trace.tb_next
    by_name = pickle.loads(pickle.dumps(functions['step'])) is functions['step']
    signature = str(inspect.signature(functions['step']))
    compiles = fullgraph(functions['tensor'])
    recording.runtime.remove()
    off = nanoseconds(functions['step'])
    recording = Recording()
    recording.journal.put = lambda record, span=None: None if span is None else setattr(span, 'epoch', -1)
    argument = nanoseconds(made(how, {'n': ('arg', 'n')}, recording)['step'])
    recording.figures.left = 0
    spent = nanoseconds(made(how, {'n': ('arg', 'n')}, recording)['step'])
    recording.runtime.remove()
    answers = [plain, argument, coroutine, spent, off, above, depth, 'yes' if freed else 'no', frames, compiles]
    answers += ['yes' if by_name else 'no', signature]
    answers += [_of_place(how, kind) for kind in PLACES]
    return [f'{answer:.0f}' if isinstance(answer, float) else str(answer) for answer in answers]


def _of_place(how: str, kind: str) -> float | str:
    """What a place costs: a call's rule may be on the function that is called instead; the others have none."""
    if how == 'wrap' and kind != 'call':
        return '-'
    recording = Recording()
    recording.journal.put = lambda record, span=None: None if span is None else setattr(span, 'epoch', -1)
    functions = made(how, {}, recording, kind if how == 'rewrite' else None)
    found = nanoseconds(functions[kind])
    recording.runtime.remove()
    return found


HEADS = (
    *('ns', 'ns with an argument', 'ns of a coroutine', 'ns, budget spent', 'ns in a process without us'),
    *('caller seen', 'recursion depth', 'argument freed at `del`', 'frames in a traceback', 'torch fullgraph'),
    *('pickled by name', 'signature', 'ns of an iteration', 'ns of a block', 'ns of one call of another'),
)


def main() -> None:
    """See the module."""
    ways = ('plain', 'wrap', 'rewrite')
    table = [row(how) for how in ways]
    print('{}.{}.{}'.format(*sys.version_info), *(f'{how:>18}' for how in ways))
    for head, *answers in zip(HEADS, *table, strict=True):
        print(f'  {head:<28}', *(f'{answer:>18}' for answer in answers))


if __name__ == '__main__':
    if '--here' in sys.argv:
        main()
    else:
        from tests.helpers.program import SUPPORTED, interpreter

        for found in filter(None, map(interpreter, SUPPORTED)):
            subprocess.run([found, __file__, '--here'], check=True)
