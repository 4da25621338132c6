# SPDX-License-Identifier: Apache-2.0
"""Rewrites whole libraries with a span at every place, and compares that with what the compiler makes of them.

`make torture` runs it on every Python found: first all pure-Python modules of the standard library and what is
installed beside it, compiled and compared (`code_tables`); then CPython's own tests of what rewriting touches, with the
tests and the modules they are of rewritten, against a plain run. `python torture.py compile [FILES]` and
`python torture.py suites [NAMES]` run one half in one interpreter.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import marshal
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from tests.helpers.code_tables import differences  # noqa: E402
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
# The twenty largest packages, and of each as many modules, spread evenly.
PACKAGES, MODULES_OF_ONE = 20, 60


def libraries() -> list[Path]:
    """The modules of the standard library, and of the largest packages installed beside it."""
    standard, installed = (Path(sysconfig.get_path(name)) for name in ('stdlib', 'purelib'))
    found = [path for path in _modules_in(standard) if 'site-packages' not in path.parts]
    packages = [_modules_in(folder) for folder in installed.iterdir() if (folder / '__init__.py').exists()]
    for modules in sorted(packages, key=len, reverse=True)[:PACKAGES]:
        found += modules[:: -(-len(modules) // MODULES_OF_ONE)]
    return found


def _modules_in(folder: Path) -> list[Path]:
    left_out = {'test', 'tests', 'testing', 'lib2to3'}
    return sorted(path for path in folder.rglob('*.py') if not left_out & {*path.parts})


def compare(paths: list[Path]) -> tuple[int, int, int]:
    """Compare files; how many there are, with how many places, and how many differ."""
    files = places = wrong = 0
    for path in paths:
        source = path.read_bytes()
        try:
            compile(source, str(path), 'exec', dont_inherit=True)
        except (SyntaxError, ValueError):
            continue  # no Python of this version
        files += 1
        try:
            wanted = everything(source)
            counted: list[int] = []
            found = list(differences(source, str(path), wanted, places=counted))
            places += sum(counted)
        except UnicodeDecodeError:
            continue
        except Exception as error:
            found = [f'{type(error).__name__}: {error}']
        wrong += bool(found)
        for line in found[:SHOWN]:
            print(f'{path}: {line[:300]}', flush=True)
    return files, places, wrong


def suites(names: Sequence[str] = SUITES) -> bool:
    """Run CPython's own tests plain and rewritten; True when both come out alike."""
    alike = True
    for name in names:
        plain, rewritten = ({*_outcomes(name, how)} for how in ('', 'rewritten'))
        differs = sorted(line for line in plain ^ rewritten if not line.rpartition(' ')[0].endswith(KNOWN))
        alike &= not differs
        print(f'{name}: {len(plain)} tests, {differs[:6] if differs else "as plain"}', flush=True)
    return alike


def _outcomes(name: str, how: str) -> list[str]:
    """Each test of a suite with how it went."""
    with tempfile.TemporaryDirectory() as folder:
        if how:
            for module in (*MODULES, *_modules_of(name)):
                _rewrite(module, Path(folder))
        program = [sys.executable, '-W', 'ignore', '-c', _RUN, name, folder, str(ROOT)]
        done = subprocess.run(program, capture_output=True, text=True, timeout=3600)
    if done.returncode:
        return [f'{how} {name} ended with {done.returncode}: {done.stderr[-300:]}']
    return done.stdout.splitlines()


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
for test, outcome in sorted(told):
    print(test, outcome)
if rewritten:
    sys.stderr.write(f'{recording.figures.spans} spans, {len(recording.faults)} faults {recording.faults[:3]}\\n')
"""


def main(what: str = 'all', *names: str) -> int:
    """See the module."""
    warnings.simplefilter('ignore')
    version = '{}.{}.{}'.format(*sys.version_info)
    if what == 'all':
        from tests.helpers.program import SUPPORTED, interpreter

        pythons = [found for each in SUPPORTED if (found := interpreter(each)) is not None]
        return max(subprocess.call([python, __file__, half]) for python in pythons for half in ('compile', 'suites'))
    if what == 'suites':
        return not suites(names or SUITES)
    began = time.monotonic()
    files, places, wrong = compare([Path(name) for name in names] or libraries())
    print(f'{version}: {files} modules, {places} places, {wrong} differ, {time.monotonic() - began:.0f} s')
    return bool(wrong)


if __name__ == '__main__':
    os.environ.pop('PYTHONPATH', None)
    sys.exit(main(*sys.argv[1:]))
