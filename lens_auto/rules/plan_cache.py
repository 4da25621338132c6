# SPDX-License-Identifier: Apache-2.0
"""The compiled plan of a launch, from the cache when nothing it was made from has changed.

A launch that finds its plan here imports no YAML and no importlib.metadata; it compares the stamps of what was read.
The folder is the user's own: 0700, owner checked, no links followed. Without such a folder every launch compiles.
"""

from __future__ import annotations

import marshal
import os
import stat
import time

from .plan import FORMAT, dump, sha256_hex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .finding import Sources

    Stamp = tuple[int, int, int] | tuple[str, ...] | None

_INDEX_FORMAT = 3
_DAY = 86_400
_KEPT_DAYS = 30
_METADATA = ('.dist-info', '.egg-info')


class Compiled:
    """A plan on disk.

    Attributes:
        path: The plan file.
        sha256: Its SHA-256, in hex.
        modules: The modules to hook, sorted; torch among them.
        scripts: The ends of the paths of the scripts that rules name.
        files: Path, framework, package of `when` and origin of each rule file.
        cached: Whether the cache had it.
        problem: Why the cache folder cannot be used; empty if it can.
        ignored: What the user has to be told of files that were found and are no rule files, a line each.
    """

    __slots__ = ('cached', 'files', 'ignored', 'modules', 'path', 'problem', 'scripts', 'sha256')

    def __init__(
        self,
        path: str,
        sha256: str,
        modules: tuple[str, ...],
        scripts: tuple[str, ...],
        files: tuple[tuple[str, str, str | None, str], ...],
        cached: bool,
        problem: str,
        ignored: tuple[str, ...],
    ) -> None:
        self.path = path
        self.sha256 = sha256
        self.modules = modules
        self.scripts = scripts
        self.files = files
        self.cached = cached
        self.problem = problem
        self.ignored = ignored


def compiled(sources: Sources, agent: str, cache_dir: str, fallback_dir: str | None = None) -> Compiled:
    """The plan of `sources`, compiled now or taken from the cache.

    Args:
        sources: From `finding.sources`.
        agent: The agent's version.
        cache_dir: The cache folder of this user, made if it is missing; empty where there is none.
        fallback_dir: Where the plan goes when the cache folder cannot be used; a new private folder unless given.

    Raises:
        RuleErrors: A rule file is wrong (only where this has to compile).
        OSError: The plan can be stored neither here nor there.
    """
    problem = _unusable(cache_dir)
    key = sha256_hex(repr((_INDEX_FORMAT, FORMAT, agent, sources.first, sources.scan, sources.last)).encode())[:32]
    index = os.path.join(cache_dir, f'{key}.index')
    if not problem:
        found = _warm(index, cache_dir)
        if found is not None:
            return found
    return _cold(sources, agent, cache_dir, index, fallback_dir, problem)


def _warm(index: str, folder: str) -> Compiled | None:
    try:
        with open(os.open(index, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), 'rb') as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                return None
            stamps, sha256, size, modules, scripts, files, ignored = marshal.loads(file.read())
        path = os.path.join(folder, f'{sha256}.plan')
        plan = os.lstat(path)
        if not stat.S_ISREG(plan.st_mode) or plan.st_uid != os.geteuid() or plan.st_size != size:
            return None
        for name, stamp in stamps:
            if _stamp(name) != stamp:
                return None
        if time.time() - status.st_mtime > _DAY:
            # Marks both as in use, for `_prune`.
            os.utime(index)
            os.utime(path)
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return Compiled(path, sha256, modules, scripts, files, True, '', ignored)


def _cold(sources: Sources, agent: str, cache_dir: str, index: str, fallback_dir: str | None, problem: str) -> Compiled:
    from .merging import modules, scripts
    from .plan_build import build

    names = [name for name, _ in sources.first + sources.last]
    before = _stamps((*names, *sources.scan, *_own_files()))
    built = build(sources, agent)
    data = dump(built.plan)
    sha256 = sha256_hex(data)
    hooked = modules(built.plan), scripts(built.plan)
    if not problem:
        try:
            path = os.path.join(cache_dir, f'{sha256}.plan')
            _store(path, data)
            stamps = (*before, *_stamps((*(file[0] for file in built.files), *built.read)))
            # Not stored when a file changed while it was read: the plan may be of either state of it.
            if all(_stamp(name) == stamp for name, stamp in before):
                entry = (stamps, sha256, len(data), *hooked, built.files, built.ignored)
                _store(index, marshal.dumps(entry, 2))
            _prune(cache_dir)
            return Compiled(path, sha256, *hooked, built.files, False, '', built.ignored)
        except OSError as error:
            problem = f'{cache_dir}: {error.strerror}'
    if fallback_dir is None:
        from tempfile import mkdtemp

        fallback_dir = mkdtemp(prefix='lens-plan-')
    os.makedirs(fallback_dir, mode=0o700, exist_ok=True)
    path = os.path.join(fallback_dir, f'{sha256}.plan')
    _store(path, data)
    return Compiled(path, sha256, *hooked, built.files, False, problem, built.ignored)


def _unusable(folder: str) -> str:
    """Why a folder cannot hold the cache; empty if it can. Makes the folder where it is missing."""
    if not folder:
        return 'there is no home folder'
    try:
        try:
            found = os.lstat(folder)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
            os.mkdir(folder, 0o700)
            found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode):
            return f'{folder}: not a folder'
        if found.st_uid != os.geteuid():
            return f'{folder}: belongs to another user'
        if found.st_mode & 0o022:
            return f'{folder}: others can write to it'
        if found.st_mode & 0o077:
            os.chmod(folder, 0o700)
    except OSError as error:
        return f'{folder}: {error.strerror}'
    return ''


def _stamp(name: str) -> Stamp:
    """What tells one state of a file or folder from another."""
    try:
        found = os.stat(name)
        if not stat.S_ISDIR(found.st_mode) or name.endswith('-packages'):
            return found.st_size, found.st_mtime_ns, found.st_ctime_ns
        # Packages are only sometimes installed in other folders, such as a checkout on PYTHONPATH. Those change with
        # every log file written there, so only what is installed counts.
        return tuple(sorted(entry for entry in os.listdir(name) if entry.endswith(_METADATA)))
    except OSError:
        return None


def _stamps(names: tuple[str, ...]) -> tuple[tuple[str, Stamp], ...]:
    return tuple((name, _stamp(name)) for name in dict.fromkeys(names))


def _own_files() -> list[str]:
    # A checkout keeps its version while its compiler changes.
    folder = os.path.dirname(os.path.abspath(__file__))
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith('.py')]


def _store(path: str, data: bytes) -> None:
    """Write a file of ours so that a reader sees all of it or none."""
    temporary = f'{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp'
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, 'wb') as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _prune(folder: str) -> None:
    """Remove what no launch has used for a month."""
    limit = time.time() - _KEPT_DAYS * _DAY
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        try:
            if name.endswith(('.index', '.plan', '.tmp')) and os.lstat(path).st_mtime < limit:
                os.unlink(path)
        except OSError:
            # Another launch was quicker.
            continue
