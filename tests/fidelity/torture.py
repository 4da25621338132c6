# SPDX-License-Identifier: Apache-2.0
"""Rewrites whole libraries with a span at every place, and compares that with what the compiler makes of them.

`make torture` runs it on every Python found: first all pure-Python modules of the standard library and those of twenty
large packages, compiled and compared (`code_tables`); then CPython's own tests of what rewriting touches, with the
tests and the modules they are of rewritten, against a plain run. Then the codemod writes into the same packages and
takes it out again, on one Python (`torture_codemod`). `python torture.py compile [FILES]`, `packages [NAMES]` and
`suites [NAMES]` run one part in one interpreter.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import marshal
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from tests.helpers.code_tables import differences  # noqa: E402
from tests.helpers.large_packages import PINNED, folder, modules_in  # noqa: E402
from tests.helpers.rewriting import edited, everything  # noqa: E402

SUITES = (
    *('test_inspect', 'test_generators', 'test_asyncgen', 'test_with', 'test_contextlib', 'test_coroutines'),
    'test_pickle',
)
# What each of the suites is about, rewritten as well as the suite.
MODULES = (
    *('inspect', 'contextlib', 'pickle', 'dis', 'functools', 'types', 'collections', 'tokenize', 'ast', 'copyreg'),
    *('unittest.case', 'unittest.mock', 'asyncio.base_events', 'asyncio.tasks', 'asyncio.runners', 'weakref'),
)
STATEMENTS = ('loop', 'block', 'function')
# Tests that look at bytecode: which names it has, and which constant is the first.
KNOWN = (
    *('TestGetClosureVars.test_getclosurevars_empty', 'TestGetClosureVars.test_method_closure'),
    *('TestGetClosureVars.test_name_resolution', 'TestSignatureBind.test_signature_bind_implicit_arg'),
)
SHOWN = 3


class Looked(NamedTuple):
    """One module, looked at.

    Attributes:
        places: How many places it has, each with a span for the comparison.
        wrong: What differs, a line each; nothing if all is well.
        left_out: Why it was not looked at, or ''.
    """

    places: int
    wrong: list[str]
    left_out: str = ''


def libraries() -> list[Path]:
    """The modules of the standard library."""
    standard = modules_in(Path(sysconfig.get_path('stdlib')))
    return [path for path in standard if 'site-packages' not in path.parts]


def compare(path: Path) -> Looked:
    """Rewrite a module at every place, and compare."""
    source = path.read_bytes()
    try:
        compile(source, str(path), 'exec', dont_inherit=True)
    except (SyntaxError, ValueError):
        return Looked(0, [], 'no Python of this version')
    try:
        counted: list[int] = []
        found = list(differences(source, str(path), everything(source), places=counted))
        return Looked(sum(counted), found)
    except UnicodeDecodeError:
        return Looked(0, [], 'in an encoding of its own')
    except Exception as error:
        return Looked(0, [f'{type(error).__name__}: {error}'])


def table(title: str, modules: dict[str, list[Path]], look: Callable[[Path], Looked]) -> int:
    """Look at modules, and print a line for each library; how many modules differ.

    Args:
        title: What heads the table.
        modules: Those of each library.
        look: What is done with one, in a process of its own.
    """
    began = time.monotonic()
    row = '{:28} {:>8} {:>9} {:>7}  {}'
    print(row.format(title, 'modules', 'places', 'differ', 'left out').rstrip(), flush=True)
    sums = [0, 0, 0]
    with get_context('fork').Pool(os.cpu_count()) as pool:
        for name, paths in modules.items():
            looked = pool.map(look, paths, chunksize=4)
            for path, each in zip(paths, looked, strict=True):
                for line in each.wrong[:SHOWN]:
                    print(f'{path}: {line[:300]}', flush=True)
            out = [each.left_out for each in looked if each.left_out]
            figures = (len(paths) - len(out), sum(e.places for e in looked), sum(bool(e.wrong) for e in looked))
            why = ', '.join(f'{out.count(reason)} {reason}' for reason in dict.fromkeys(out))
            print(row.format(name, *(f'{each:,}' for each in figures), why).rstrip(), flush=True)
            sums = [one + other for one, other in zip(sums, figures, strict=True)]
    took = f'{time.monotonic() - began:.0f} s'
    print(row.format(f'{len(modules)} in all', *(f'{each:,}' for each in sums), took), flush=True)
    return sums[2]


def packages(names: Sequence[str] = ()) -> dict[str, list[Path]]:
    """The modules of the large packages, by name and version.

    Args:
        names: Of these only.
    """
    place = folder()
    return {f'{name} {PINNED[name]}': modules_in(place / name) for name in names or PINNED}


class Ran(NamedTuple):
    """A suite that has run.

    Attributes:
        outcomes: Each test, with how it went.
        spans: How many spans were recorded meanwhile.
        wrong: What was not as it should be, whatever the tests say; a line each.
    """

    outcomes: set[str]
    spans: int
    wrong: list[str]


def suites(names: Sequence[str] = SUITES) -> bool:
    """Run CPython's own tests plain and rewritten; True when both come out alike, with spans and without a fault."""
    alike = True
    for name in names:
        plain, rewritten = (_run(name, how) for how in ('', 'rewritten'))
        changed = plain.outcomes ^ rewritten.outcomes
        differs = sorted(line for line in changed if not line.rpartition(' ')[0].endswith(KNOWN))
        wrong = [*plain.wrong, *rewritten.wrong, *differs[:6]]
        if not rewritten.spans:
            wrong.append('no span was recorded: nothing was rewritten')
        alike &= not wrong
        told = f'{len(plain.outcomes):,} tests, {rewritten.spans:,} spans'
        print(f'{name}: {told}, {wrong if wrong else "as plain"}', flush=True)
    return alike


def _run(name: str, how: str) -> Ran:
    """Run a suite, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        if how:
            for module in (*MODULES, *_modules_of(name)):
                _rewrite(module, Path(folder))
        program = [sys.executable, '-W', 'ignore', '-c', _RUN, name, folder, str(ROOT)]
        done = subprocess.run(program, capture_output=True, text=True, timeout=3600)
    if done.returncode:
        return Ran(set(), 0, [f'{how} {name} ended with {done.returncode}: {done.stderr[-300:]}'])
    ran = json.loads(done.stdout)
    # What a loader makes of a module that it cannot import is a test, and fails in the same way plain and rewritten.
    wrong = [f'not loaded: {test}' for test, _ in ran['told'] if test.startswith('unittest.loader._FailedTest')]
    wrong += [f'a fault of ours: {fault}' for fault in ran['faults'][:SHOWN]]
    wrong += [] if ran['told'] else [f'{name} has no tests']
    return Ran({f'{test} {outcome}' for test, outcome in ran['told']}, ran['spans'], wrong)


def _modules_of(name: str) -> list[str]:
    folder = Path(sysconfig.get_path('stdlib')) / 'test' / name
    return [f'test.{name}', *(f'test.{name}.{path.stem}' for path in folder.glob('*.py'))]


def _rewrite(module: str, folder: Path) -> None:
    spec = importlib.util.find_spec(module)
    if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
        return
    code = edited(Path(spec.loader.path).read_bytes(), spec.loader.path, STATEMENTS).code
    (folder / module).write_bytes(marshal.dumps(code))


# Imports nothing of the modules that are rewritten before they are.
_RUN = """
import marshal, os, sys
from importlib.machinery import PathFinder, SourceFileLoader
name, folder, root = sys.argv[1:4]
rewritten = frozenset(os.listdir(folder))
class Loader(SourceFileLoader):
    def get_code(self, fullname):
        with open(os.path.join(folder, fullname), 'rb') as file:
            return marshal.loads(file.read())
class Finder:
    @staticmethod
    def find_spec(fullname, path=None, target=None):
        if fullname not in rewritten:
            return None
        spec = PathFinder.find_spec(fullname, path)
        spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec
sys.path.insert(0, root)
from tests.helpers.place_recording import Recording
sys.path.remove(root)
if rewritten:
    recording = Recording()
    recording.journal.put = lambda record, span=None: span is not None and setattr(span, 'epoch', -1)
    sys.meta_path.insert(0, Finder)
import io, unittest
suite = unittest.defaultTestLoader.loadTestsFromName('test.' + name)
class Result(unittest.TestResult):
    def addSuccess(self, test): told.append((test.id(), 'passed'))
    def addFailure(self, test, error): self.addError(test, error)
    def addError(self, test, error):
        told.append((test.id(), 'failed'))
        sys.stderr.write(f'{test.id()}: {error[1]!r}\\n')
    def addSkip(self, test, reason): told.append((test.id(), 'skipped'))
    def addExpectedFailure(self, test, error): told.append((test.id(), 'failed'))
    def addUnexpectedSuccess(self, test): told.append((test.id(), 'passed'))
told = []
out, sys.stdout = sys.stdout, io.StringIO()
suite.run(Result())
sys.stdout = out
import json
spans, faults = (recording.figures.spans, recording.faults) if rewritten else (0, [])
print(json.dumps({'told': sorted(told), 'spans': spans, 'faults': faults}))
"""


def main(what: str = 'all', *names: str) -> int:
    """See the module."""
    warnings.simplefilter('ignore')
    version = '{}.{}.{}'.format(*sys.version_info)
    if what == 'all':
        from tests.helpers.program import SUPPORTED, interpreter

        folder()
        pythons = [found for each in SUPPORTED if (found := interpreter(each)) is not None]
        parts = [[python, __file__, part] for python in pythons for part in ('compile', 'packages', 'suites')]
        parts.append([sys.executable, str(Path(__file__).with_name('torture_codemod.py'))])
        return max([subprocess.call(part) for part in parts])
    if what == 'suites':
        return not suites(names or SUITES)
    if what == 'packages':
        return bool(table(version, packages(names), compare))
    return bool(table(version, {'standard library': [Path(name) for name in names] or libraries()}, compare))


if __name__ == '__main__':
    os.environ.pop('PYTHONPATH', None)
    sys.exit(main(*sys.argv[1:]))
