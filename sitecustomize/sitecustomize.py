# SPDX-License-Identifier: Apache-2.0
"""Stage 1 of lens-auto: decides whether this Python process takes part in a traced run.

Found through PYTHONPATH by every Python of the run, whatever its version and venv, so it imports os and sys alone and
parses on 3.6. If the process takes part, a finder that knows the named modules goes first on `sys.meta_path`; the
rest of lens-auto is loaded at the first import of one of them. Then the user's own sitecustomize runs as if we were
not there.
"""

import os
import sys

try:
    import _thread
except ImportError:  # Python 2, which stands down below
    pass

# Programs that are no part of anybody's run: installers, compilers' helpers, multiprocessing's own, Ray's daemons.
_MODULES = ('pip', 'venv', 'ensurepip', 'virtualenv', 'uv', 'compileall', 'py_compile')
_COMMANDS = ('multiprocessing.resource_tracker', 'multiprocessing.semaphore_tracker')
_PROGRAMS = ('pip', 'pip3', 'uv', 'uvx', 'virtualenv', 'ninja', 'cmake', 'meson', 'conda', 'mamba')
_PROGRAMS += ('lens-instrument', 'lens-rules')  # a launcher within the run: what it starts takes part
_FOLDERS = ('torch/_inductor/compile_worker', 'triton/backends')
_RAY = ('log_monitor.py', 'monitor.py', 'dashboard.py', 'agent.py', 'main.py', 'setup_worker.py')


class _Finder(object):
    """Knows the named modules; gives the spec the other finders give, with a loader of ours before the real one."""

    def __init__(self, home, names):
        self.home = home
        self.names = names
        self.loader = _Waking  # until stage 2 puts its own here
        self.asking = set()
        self.awake = False
        self.lock = _thread.RLock()
        self.main = frozenset()  # of the names, what this process runs as `__main__`

    def find_spec(self, name, path=None, target=None):
        if name not in self.names:
            return None
        if name == 'lens_auto':
            machinery = sys.modules['_frozen_importlib_external']
            where = os.path.join(self.home, '__init__.py')
            return machinery.spec_from_file_location(name, where, submodule_search_locations=[self.home])
        spec = self.ask(name, path, target)
        try:
            # A module without a loader (a namespace package) or with a pre-PEP 451 one runs no code we could follow.
            if spec is not None and hasattr(spec.loader, 'exec_module') and not getattr(type(spec.loader), 'lens', 0):
                loader = self.loader(self, name, spec.loader)
                if getattr(type(loader), 'lens', 0):
                    loader.lens_spec = spec
                    spec.loader = loader
        except Exception as error:
            if _foreign(error):
                raise
            _note('armed', 'finder: %s' % type(error).__name__)
        return spec

    def ask(self, name, path=None, target=None):
        # By hand over meta_path: `importlib.util.find_spec` imports parents and takes module locks in an order that can
        # deadlock with a thread that imports. A finder that asks all others, as we do, must not be asked in a circle.
        question = (name, _thread.get_ident())
        if question in self.asking:
            return None
        self.asking.add(question)
        try:
            for finder in list(sys.meta_path):
                find = None if finder is self else getattr(finder, 'find_spec', None)
                spec = None if find is None else find(name, path, target)
                if spec is not None:
                    return spec
        finally:
            self.asking.discard(question)
        return None

    def wake(self):
        """Load stage 2, once; another thread waits for it, and what it imports itself is patched when it stands."""
        with self.lock:
            if self.awake:
                return
            self.awake = True
            try:
                import lens_auto.hook.activate as activate

                activate.start(self)
            except Exception as error:
                if _foreign(error):
                    self.awake = False  # the next import of a named module tries again
                    raise
                self.names = frozenset(('lens_auto',))
                _note('stood_down', 'stage 2: %s %s' % (type(error).__name__, getattr(error, 'reason', '')))

    def forked(self):
        """In a child: a thread that held the lock was left behind, and what it was loading is not whole here."""
        if getattr(self.lock, '_is_owned')():  # noqa: B009 -- known to no type checker
            return  # a signal handler of the program has forked while we load: the child goes on loading
        self.lock = _thread.RLock()
        if self.awake and self.loader is _Waking and len(self.names) > 1:
            self.names = frozenset(('lens_auto',))
            _note('stood_down', 'forked while another thread loaded stage 2')


class _Waking(object):
    """In front of a named module's loader while stage 2 is not there: loads it when the module is made.

    Not in the finder: that runs under the import lock, and imports there can deadlock with a thread that imports.
    """

    lens = True
    lens_spec = None

    def __init__(self, finder, name, loader):
        self.lens_finder, self.lens_name, self.lens_loader = finder, name, loader

    def __getattr__(self, name):
        if name.startswith('lens'):  # a copy being made, with nothing in it yet
            raise AttributeError(name)
        return getattr(self.lens_loader, name)

    @property
    def __class__(self):
        return type(self.lens_loader)

    def __eq__(self, other):
        return self.lens_loader == getattr(other, 'lens_loader', other)

    def __hash__(self):
        return hash(self.lens_loader)

    def __repr__(self):
        return repr(self.lens_loader)

    def create_module(self, spec):
        loader = self.lens_wake()
        if spec.loader is self:
            spec.loader = loader
        create = getattr(loader, 'create_module', None)
        return None if create is None else create(spec)

    def exec_module(self, module):
        # Only after a reload, or behind a lazy loader: else create_module has put stage 2's loader in our place.
        self.lens_wake().exec_module(module)

    def get_code(self, name):
        # What `python -m` runs, and `python FOLDER`: nothing else is asked of the loader.
        return self.lens_wake().get_code(name)

    def lens_wake(self):
        finder = self.lens_finder
        finder.wake()
        if finder.loader is not _Waking and not getattr(type(self.lens_loader), 'lens', 0):
            loader = finder.loader(finder, self.lens_name, self.lens_loader)
            if getattr(type(loader), 'lens', 0):
                loader.lens_spec = self.lens_spec
                self.lens_loader = loader
        return self.lens_loader


class _Script(object):
    """On `sys.path_hooks`: CPython asks for an importer of the script before it runs that, see `lens_auto.hook.script`.

    The answer is no, and a plain run follows, unless rules are about the script and everything of ours went well.
    """

    def __init__(self, finder, path):
        self.finder, self.path = finder, path

    def __call__(self, path):
        if _absolute(path) != self.path:
            raise ImportError(path)
        try:
            # The script's folder is not on the path yet: what lies there can be imported as soon as it is.
            if not getattr(sys.flags, 'safe_path', False):
                self.finder.beside = os.path.dirname(os.path.realpath(path))
            self.finder.wake()
            importer = self.finder.script(path)
        except Exception:
            importer = None
        hooks = sys.path_hooks
        at = hooks.index(self)
        if importer is not None:
            del hooks[at]
            return importer
        # CPython goes on through as many hooks as there were: twice the same one does no harm.
        hooks[at : at + 1] = hooks[at + 1 : at + 2] or [self]
        raise ImportError(path)


def _watch(finder, scripts):
    """Have the finder told of what this process runs as `__main__`, which no import of a named module leads to."""
    option, word, following = _program()
    names = ()
    if option == 'm':
        path = os.path.abspath(following.replace('.', os.sep))
        names = (following, following + '.__main__')
        finder.names |= {name for name, end in zip(names, ('.py', '/__main__.py')) if _ends(path + end, scripts)}
    elif option == 'c':
        # A child of multiprocessing runs the script of its parent by way of runpy.
        names = ('runpy',) if scripts and 'multiprocessing' in following else ()
        finder.names |= set(names)
    elif word and word != '-':
        path = _absolute(word)
        if _ends(path, scripts):
            sys.path_hooks.insert(0, _Script(finder, path))
        elif _ends(path + '/__main__.py', scripts):  # a folder or an archive
            names = ('__main__',)
            finder.names |= {'__main__'}
    finder.main = finder.names.intersection(names)


def _absolute(path):
    path = os.path.abspath(path)
    return path[1:] if path[:2] == '//' else path  # as CPython has a relative path where the working directory is /


def _ends(path, scripts):
    return any(path.endswith('/' + script) for script in scripts)


def _foreign(error):
    """True when a signal handler of the program, or another thread, raised it while our code ran."""
    try:
        from lens_auto.record.foreign import foreign
    except Exception:  # then what failed is our own loading
        return False
    return foreign(error)


def _reason():
    """Why this process takes no part, or None."""
    version = sys.version_info
    if sys.implementation.name != 'cpython' or not (3, 10) <= version < (3, 15):
        return 'python %s %d.%d is not supported' % (sys.implementation.name, version[0], version[1])
    if not getattr(sys, '_is_gil_enabled', bool)() and hasattr(sys, '_is_gil_enabled'):
        return 'free-threaded python is not supported'
    option, word, following = _program()
    if option == 'm':
        return 'helper: %s' % following if following.split('.')[0] in _MODULES else None
    if option == 'c':
        return next(('helper: %s' % command for command in _COMMANDS if command in following), None)
    program = os.path.basename(word)
    if program in _PROGRAMS or _any(_FOLDERS, word) or ('/ray/' in word and program in _RAY):
        return 'helper: %s' % program
    return None


def _program():
    """What this Python was asked to run: ('m' | 'c', '', module or command) or ('', script, '')."""
    words = iter(sys.orig_argv[1:])
    for word in words:
        if word[:1] != '-' or word == '-':
            return '', word, ''
        if word[:2] == '--':
            if word == '--check-hash-based-pycs':
                next(words, '')
            continue
        for index, letter in enumerate(word[1:], 2):
            if letter in 'mcWX':  # they take a value, in the same word or the next
                value = word[index:] or next(words, '')
                if letter in 'mc':
                    return letter, '', value
                break
    return '', '', ''


def _any(parts, word):
    return any(part in word for part in parts)


def _note(outcome, reason):
    """One line for the launcher's roll-call; an append this short is atomic."""
    try:
        with open('/proc/self/stat', 'rb') as stat:
            started = stat.read().rpartition(b')')[2].split()[19].decode()
    except (OSError, IndexError):
        started = '0'
    option, script, module = _program() if hasattr(sys, 'orig_argv') else ('', '', '')
    # A child of multiprocessing has its parent's program; what else `-c` or standard input gives has no file.
    given = 'python' if 'multiprocessing' in module else '-' + option
    program = os.path.basename(script) or (module if option == 'm' else given)
    fields = (os.getpid(), started, '%d.%d.%d' % sys.version_info[:3], 'python', outcome, reason, program)
    line = '\t'.join(str(field).replace('\t', ' ').replace('\n', ' ')[:200] for field in fields) + '\n'
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | getattr(os, 'O_CLOEXEC', 0)
        fd = os.open(os.path.join(os.environ['LENS_SPOOL'], 'processes.tsv'), flags, 0o600)
        try:
            os.write(fd, line.encode('utf-8', 'replace'))
        finally:
            os.close(fd)
    except (OSError, KeyError):
        return  # the spool is gone or full: the run goes on, the launcher counts one process less


def _arm():
    environ = os.environ
    if environ.get('LENS_ENABLED') != '1' or not environ.get('LENS_PLAN_REF'):
        return
    home = environ.get('LENS_HOME', '')
    reason = _reason() or (
        None if os.path.isfile(os.path.join(home, '__init__.py')) else 'lens-auto is not at LENS_HOME'
    )
    _note('stood_down' if reason else 'armed', reason or '')
    if reason is None:
        # torch alone wakes nobody: stage 2 looks for it when another named module has.
        names = frozenset(environ.get('LENS_MODULES', '').split(',')) - {'', 'torch'}
        finder = _Finder(home, names | {'lens_auto'})
        sys.meta_path.insert(0, finder)
        os.register_at_fork(after_in_child=finder.forked)
        try:
            _watch(finder, [script for script in environ.get('LENS_SCRIPTS', '').split(':') if script])
        except Exception as error:
            _note('armed', 'scripts: %s' % type(error).__name__)


def _close_up(here):
    """Ray joins our entry to the PYTHONPATH of a cluster; where that is empty, what is left means the cwd."""
    if os.environ.get('PYTHONPATH') == here + os.pathsep:
        os.environ['PYTHONPATH'] = here
        after = sys.path.index(here) + 1
        if sys.path[after] in ('', os.getcwd()):
            del sys.path[after]


_here = os.path.dirname(os.path.abspath(__file__))
for _step, _given in ((_arm, ()), (_close_up, (_here,))):
    try:
        _step(*_given)
    except Exception as _error:
        _note('stood_down', 'stage 1: %s' % type(_error).__name__)
# The path is the user's own again, and so is the name: the next sitecustomize runs, or there is none and site says so.
sys.path[:] = [_entry for _entry in sys.path if _entry != _here]
sys.path_importer_cache.pop(_here, None)
sys.modules.pop('sitecustomize', None)
import sitecustomize  # noqa: E402,F401
