# SPDX-License-Identifier: Apache-2.0
"""Named modules import as they do without us, whatever way they come in, and are patched."""

import re
import zipfile
from pathlib import Path

import pytest

from tests.helpers.program import Program, every_python, function, python

FILES = {
    'plain.py': """
        SEEN = (__name__, type(__loader__).__name__, type(__spec__.loader).__name__, __spec__.loader is __loader__,
                __spec__.origin == __file__, sorted(globals()))
        def f(n=1): return n
        if __name__ == '__main__': print('as main', f())
    """,
    'circle_a.py': 'import circle_b\ndef f(): return circle_b.f',
    'circle_b.py': 'import circle_a\ndef f(): return circle_a.f()',
    'space/inner.py': 'def f(): return __name__',
    'package/__init__.py': 'from . import early\ndef f(): return __path__[0][-7:]',
    'package/early.py': 'def f(): return __package__',
    'package/data.txt': 'data',
    'threaded/__init__.py': """
        import importlib, threading
        def load():
            importlib.import_module('threaded.inner').f()
            import json.tool
        thread = threading.Thread(target=load)
        thread.start(); thread.join(10)
        print('joined', not thread.is_alive())
        def f(): return 1
    """,
    'threaded/inner.py': 'def f(): return 2',
    'lazy/__init__.py': """
        import importlib, sys, types
        class Lazy(types.ModuleType):
            def __init__(self, name, old):
                super().__init__(name)
                self.__path__, self.__file__, self.__spec__ = old.__path__, old.__file__, old.__spec__
            def __getattr__(self, name):
                if name == 'Model':
                    return importlib.import_module('.model', 'lazy').Model
                raise AttributeError(name)
        sys.modules[__name__] = Lazy(__name__, sys.modules[__name__])
    """,
    'lazy/model.py': 'class Model:\n    def run(self): return type(self).__qualname__',
    'replaced.py': """
        import sys
        class Instead:
            def f(self): return 'instead'
        sys.modules[__name__] = Instead()
    """,
    'renamed.py': '__name__ = "other"\ndef f(): return __name__',
    'broken.py': """
        print('broken begins')
        def f(): return 1
        f()
        raise ValueError('broken ' + str(__spec__.name))
    """,
    'needs.py': 'import no_such_module',
    'unparsable.py': 'def (',
    'warns.py': 'import warnings; warnings.warn("old", UserWarning, stacklevel=2)\ndef f(): return 1',
    'reexports.py': 'from plain import f',
    'moved.py': 'class C:\n    class D:\n        def f(self): return 1\nd = C.D()',
}
NAMED = ('plain', 'circle_a', 'circle_b', 'space.inner', 'package', 'package.early', 'threaded', 'threaded.inner')
NAMED += ('broken', 'needs', 'unparsable', 'warns', 'renamed', 'zipped', 'missing', 'package.missing')
RULES = [function(name, f'{name}:f') for name in NAMED]
RULES += [function('lazy.run', 'lazy.model:Model.run'), function('replaced', 'replaced:Instead.f')]
RULES += [
    function('reexports', 'reexports:f'),
    function('moved', 'moved:C.D.f'),
    function('lazy', 'lazy:f'),
    function('space', 'space:f'),
]

# Scenario: source, and the spans it leaves.
SCENARIOS = {
    'import': ('import plain; print(plain.SEEN, plain.__loader__, plain.__spec__, plain.f())', ['plain']),
    'reload': (
        'import plain, importlib; old = plain.f; print(old()); again = importlib.reload(plain); old(); again.f();'
        'print(again is plain, plain.SEEN, plain.f is old, plain.__spec__, plain.__loader__ is plain.__spec__.loader)',
        ['plain'] * 3,
    ),
    'reload of a module that takes its functions from another': (
        'import reexports as r, importlib; importlib.reload(r); importlib.reload(r); print(r.f())',
        ['reexports', 'plain'],
    ),
    'lazy loader': (
        """
        import importlib.util, sys
        spec = importlib.util.find_spec('plain')
        loader = importlib.util.LazyLoader(spec.loader)
        spec.loader = loader
        module = sys.modules['plain'] = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        print(type(module).__name__)
        print(module.f(), module.SEEN, type(module).__name__, module.__loader__)
        """,
        ['plain'],
    ),
    'lazy loader, agent awake': (
        """
        import package
        import importlib.util, sys
        spec = importlib.util.find_spec('plain')
        spec.loader = importlib.util.LazyLoader(spec.loader)
        module = sys.modules['plain'] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        import space.inner
        print(object.__getattribute__(module, '__class__').__name__)
        print(module.f(), module.SEEN, type(module).__name__, module.__loader__)
        """,
        ['plain'],
    ),
    'lazy package': ('import lazy; print(lazy.Model().run()); import lazy.model; print(lazy)', ['lazy.run']),
    'circle': ('import circle_b; print(circle_b.f().__module__)', ['circle_b', 'circle_a']),
    'zip': (
        'import sys, inspect; sys.path.insert(0, "z.zip"); import zipped; print(zipped.f(), zipped.__loader__);'
        'print(inspect.getsource(zipped.f), zipped.__file__[-16:])',
        ['zipped'],
    ),
    'namespace package': ('import space.inner, space; print(space.inner.f(), space.__spec__)', ['space.inner']),
    'package': (
        'import package; print(package.f(), package.early.f(), package.__spec__)',
        ['package', 'package.early'],
    ),
    'child first': (
        'from package.early import f; import package as p; print(f(), p.f())',
        ['package.early', 'package'],
    ),
    'resources': (
        'import importlib.resources as r, pkgutil; print(r.files("package").joinpath("data.txt").read_text());'
        'print(pkgutil.get_data("package", "data.txt"));'
        'print([m.name for m in pkgutil.walk_packages(["package"], "package.")]);'
        'print(type(__import__("package").__spec__.loader.get_resource_reader("package")).__name__)',
        [],
    ),
    'thread in import': (
        'import threaded; print(threaded.f(), threaded.inner.f())',
        ['threaded.inner', 'threaded', 'threaded.inner'],
    ),
    'replaces itself': ('import replaced; print(replaced.f(), type(replaced).__name__)', ['replaced']),
    'renames itself': ('import renamed; print(renamed.f())', ['renamed']),
    'instance path': ('import moved; print(moved.d.f())', ['moved']),
    'raises': (
        """
        import sys, traceback
        import package
        for name in ('broken', 'needs', 'unparsable', 'missing', 'package.missing'):
            for attempt in range(2):
                try:
                    __import__(name)
                except Exception as error:
                    traceback.print_exc()
                    print(type(error), error, getattr(error, 'name', None))
                    print(name in sys.modules, hasattr(package, 'missing'))
        """,
        [],
    ),
    'raises, uncaught': ('import broken', []),
    'raises, uncaught, agent awake': ('import package, broken', []),
    'warns': ('import warns; import package; print(warns.f())', ['warns']),
    'warns, agent awake': ('import package; import warns; print(warns.f())', ['warns']),
    'only looked up': (
        """
        import importlib.util, importlib.machinery, copy, pickle, inspect
        for turn in range(2):
            spec = importlib.util.find_spec('plain')
            fresh = importlib.machinery.PathFinder.find_spec('plain')
            print(spec, spec == fresh, isinstance(spec.loader, importlib.machinery.SourceFileLoader), spec.has_location)
            print(spec.loader.get_source('plain') == open('plain.py').read(), spec.loader.get_filename('plain'))
            print(spec.loader.is_package('plain'), spec.loader.path, spec.cached, spec.loader == fresh.loader)
            print(copy.copy(spec.loader).name, len({spec.loader, fresh.loader}))
            import package
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        print(module.f(), spec.loader, module.SEEN)
        """,
        ['plain'],
    ),
    'run_module': (
        'import runpy; print(sorted(runpy.run_module("plain", run_name="x"))); import plain; plain.f()',
        ['plain'],
    ),
    'finder put in front and taken out': (
        """
        import sys
        class Front:
            def find_spec(self, name, path=None, target=None): return None
        def around(name):
            sys.meta_path.insert(0, Front()); module = __import__(name); out = sys.meta_path.pop(0)
            print(type(out).__name__, name)
            return module
        around('plain').f(); around('package').f()
        print(any(type(f) is Front for f in sys.meta_path))
        """,
        ['plain', 'package'],
    ),
    'finders that ask all others': (
        """
        import sys
        class Asks:
            def find_spec(self, name, path=None, target=None):
                for finder in sys.meta_path:
                    if finder is not self:
                        spec = finder.find_spec(name, path, target)
                        if spec is not None: return spec
        sys.meta_path.insert(0, Asks())
        import plain; plain.f()
        sys.meta_path.append(sys.meta_path.pop(0))
        import package; package.f()
        try: import missing
        except ImportError as error: print(error)
        """,
        ['plain', 'package'],
    ),
    'finder in front that answers itself': (
        """
        import sys, importlib.machinery
        class Answers:
            def find_spec(self, name, path=None, target=None):
                if name == 'plain': return importlib.machinery.PathFinder.find_spec(name, path, target)
        sys.meta_path.insert(0, Answers())
        import plain, package
        plain.f(); package.f()
        """,
        ['plain', 'package'],
    ),
    'blocked': (
        'import sys; sys.modules["plain"] = None\nimport package\ntry: import plain\nexcept ImportError as e: print(e)',
        [],
    ),
    'import hook by hand': (
        'import builtins; real = builtins.__import__\n'
        'def hook(name, *a, **k):\n    print(name) if name == "plain" else None\n    return real(name, *a, **k)\n'
        'builtins.__import__ = hook\nimport plain; plain.f()',
        ['plain'],
    ),
}


@every_python
@pytest.mark.parametrize('scenario', SCENARIOS)
def test_named_modules_import_as_without_us(tmp_path: Path, version: str, scenario: str) -> None:
    source, spans = SCENARIOS[scenario]
    program = Program(tmp_path, FILES | {'main.py': source})
    with zipfile.ZipFile(program.app / 'z.zip', 'w') as archive:
        archive.writestr('zipped.py', 'def f(): return __name__')
    plain = program.plain(python=python(version))
    traced = program.traced(RULES, python=python(version))
    assert traced.visible() == plain.visible()
    assert traced.journal.names() == spans, traced.stderr
    assert traced.journal.reports('fault') == []


@every_python
def test_a_named_module_run_as_a_program_is_that_program(tmp_path: Path, version: str) -> None:
    program = Program(tmp_path, FILES)
    for command in (['-m', 'plain'], ['plain.py'], ['-m', 'package.early']):
        traced = program.traced(RULES, *command, python=python(version))
        assert traced.visible() == program.plain(*command, python=python(version)).visible()


@every_python
def test_loading_stage_two_waits_for_no_thread_that_imports(tmp_path: Path, version: str) -> None:
    """A finder runs under the import lock: stage 2 loaded there waits for this thread, and this thread for the lock."""
    files = {
        'main.py': """
            import faulthandler, threading, time
            faulthandler.dump_traceback_later(20, exit=True)
            begun = threading.Event()
            def load():
                import contextvars
            import hold; hold.begun = begun
            thread = threading.Thread(target=load); thread.start()
            begun.wait()
            import plain
            thread.join()
            print(plain.f())
        """,
        'hold.py': 'begun = None',
        'contextvars.py': """
            import hold, time
            hold.begun.set()
            time.sleep(0.3)
            import slow
            from _contextvars import Context, ContextVar, Token, copy_context
        """,
        'slow.py': '',
    }
    traced = Program(tmp_path, FILES | files).traced(RULES, python=python(version))
    assert (traced.stdout, traced.stderr) == ('1\n', '')
    assert traced.journal.names() == ['plain']


@every_python
def test_two_threads_that_import_first_both_get_their_spans(tmp_path: Path, version: str) -> None:
    source = """
        import threading
        def load(name): __import__(name, fromlist=['f']).f()
        threads = [threading.Thread(target=load, args=(name,)) for name in ('plain', 'package', 'space.inner')]
        [t.start() for t in threads]; [t.join() for t in threads]
    """
    program = Program(tmp_path, FILES | {'main.py': source})
    for _ in range(3):
        traced = program.traced(RULES, python=python(version))
        assert sorted(traced.journal.names()) == ['package', 'plain', 'space.inner']


def test_pytest_rewrites_the_assertions_of_a_named_module(tmp_path: Path) -> None:
    files = {
        'conftest.py': 'import pytest; pytest.register_assert_rewrite("checked")',
        'checked.py': 'def check(a, b): assert a == b, "told"\ndef bare(a, b): assert a == b',
        'test_it.py': (
            'import checked, package\n'
            'def test_it():\n    package.f()\n    checked.check(1, 1)\n    checked.bare([1], [2])'
        ),
    }
    program = Program(tmp_path, FILES | files)
    command = ('-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-p', 'no:randomly', 'test_it.py')
    rules = [*RULES, function('check', 'checked:check'), function('test', 'test_it:test_it')]
    plain, traced = program.plain(*command), program.traced(rules, *command)
    assert 'assert [1] == [2]' in plain.stdout
    lines = [[line for line in run.stdout.splitlines() if not re.search(r' in \d', line)] for run in (plain, traced)]
    assert lines[0] == lines[1]
    # `checked` came through pytest's finder, which is in front; the next named import finds it there.
    assert traced.journal.names()[-2:] == ['package', 'check']


def test_an_unmatched_import_costs_one_set_lookup(tmp_path: Path) -> None:
    source = """
        import sys
        finder = sys.meta_path[0]
        class Names(frozenset):
            def __contains__(self, name):
                asked.append(name)
                return super().__contains__(name)
        for turn in range(2):
            asked, calls = [], []
            finder.names = Names(finder.names)
            sys.setprofile(lambda frame, event, arg: calls.append((event, frame.f_code.co_name, str(arg)[:30])))
            finder.find_spec('no_such_module')
            sys.setprofile(None)
            print(asked, [c[:2] for c in calls if c[1] not in ('<module>', '<lambda>')])
            import plain
    """
    traced = Program(tmp_path, FILES | {'main.py': source}).traced(RULES)
    expected = "['no_such_module'] [('call', 'find_spec'), ('call', '__contains__'), ('c_call', '__contains__'), "
    for line in traced.stdout.splitlines():
        assert line.startswith(expected), line
        assert line.count("'call'") == 2
