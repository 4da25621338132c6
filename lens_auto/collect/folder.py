# SPDX-License-Identifier: Apache-2.0
"""The run folder: made whole or not at all, joined by the launchers of one run, refused to any other run."""

from __future__ import annotations

import os
from time import time

from lens_auto.collect import mounts
from lens_auto.collect.run import Run, RunError, digest, identify
from lens_auto.record import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

RUNS = 'lens-runs'
KEY_FILE = '.run-key'
LAUNCHERS = 'launchers'
# git and Ray must not see a run: its files would change the hash and the size of Ray's `working_dir` upload.
_IGNORES = ('.gitignore', '.rayignore')
# A rank that starts late still joins the folder named by --run-dir when the others have ended meanwhile.
_GRACE_SECONDS = 60


class RunFolder:
    """A run's folder on disk.

    Attributes:
        path: Its absolute path.
        created: Whether this launcher made it (and so exports the run's root span).
        note: Why it does not lie where a user would look for it, or ''.
    """

    __slots__ = ('_name', 'created', 'note', 'path')

    def __init__(self, path: str, created: bool, note: str = '') -> None:
        self.path = path
        self.created = created
        self.note = note
        # Of the process that registers; one it forks to collect in its place takes the same word back.
        self._name = _own_name()

    def register(self, spool: str) -> None:
        """Leave word that this launcher works here, and where its journals lie: a reader finds them if it is killed.

        Args:
            spool: The launcher's spool.
        """
        names = os.path.join(self.path, LAUNCHERS)
        os.makedirs(names, 0o700, exist_ok=True)
        _write(os.path.join(names, self._name), spool + '\n')

    def unregister(self) -> None:
        """Take that word back; the launcher's part of run.json has it all by now."""
        for remove, path in ((os.unlink, os.path.join(LAUNCHERS, self._name)), (os.rmdir, LAUNCHERS)):
            try:
                remove(os.path.join(self.path, path))
            except OSError:
                pass  # another launcher's word is still there

    def launchers(self) -> list[tuple[str, str, bool]]:
        """Launchers that registered and have not finished: name, spool, and whether it may still be alive."""
        found: list[tuple[str, str, bool]] = []
        names = os.path.join(self.path, LAUNCHERS)
        try:
            entries = sorted(os.listdir(names))
        except OSError:
            return found
        for name in entries:
            try:
                with open(os.path.join(names, name), encoding='utf-8', errors='surrogateescape') as text:
                    spool = text.readline().rstrip('\n')
                host, pid, started = name.rsplit('-', 2)
                alive = host != process.hostname() or process.alive(int(pid), int(started))
            except (OSError, ValueError):
                continue
            found.append((name, spool, alive))
        return found


def _own_name() -> str:
    return f'{process.hostname()}-{os.getpid()}-{process.start_ticks()}'


def open_run(environ: Mapping[str, str], cwd: str, run_dir: str | None = None) -> tuple[Run, RunFolder]:
    """Identify the run and make or join its folder.

    Args:
        environ: The launcher's environment.
        cwd: Working directory of the command.
        run_dir: The folder itself, when the user names one.

    Raises:
        RunError: The named folder is another run's, or no folder can be made anywhere.
    """
    run = identify(environ)
    if run_dir is not None:
        return run, _at(run, os.path.join(cwd, run_dir))
    reasons: list[str] = []
    for parent, reason in _parents(environ, cwd):
        note = ''
        if reasons:
            note = f'the run folder is under {parent}: ' + '; '.join(reasons)
        if reason:
            reasons.append(reason)
            continue
        try:
            return run, _under(run, parent, note)
        except OSError as error:
            reasons.append(f'{parent}: {error.strerror or error}')
    raise RunError('no folder for the run can be made; name one with --run-dir\n    ' + '\n    '.join(reasons))


def _parents(environ: Mapping[str, str], cwd: str) -> list[tuple[str, str]]:
    """Places for `lens-runs`, best first, each with the reason not to take it or ''."""
    kind = mounts.kind_of(cwd)
    here = os.path.join(cwd, RUNS)
    reason = '' if kind != mounts.NETWORK else f'{cwd} is on a {kind} ({mounts.file_system(cwd)})'
    places = [(here, reason)]
    temporary = environ.get('TMPDIR') or '/tmp'
    if not per_job(environ, temporary):
        kind = mounts.kind_of(temporary)
        # Somebody else's /tmp/lens-runs is not ours to write in.
        name = RUNS if _ours_or_free(os.path.join(temporary, RUNS)) else f'{RUNS}-{os.geteuid()}'
        places.append((os.path.join(temporary, name), '' if kind == mounts.DISK else f'{temporary} is on a {kind}'))
    cache = environ.get('XDG_CACHE_HOME') or os.path.join(environ.get('HOME') or os.path.expanduser('~'), '.cache')
    places.append((os.path.join(cache, 'lens-auto', RUNS), ''))
    places.append((os.path.join(temporary, f'{RUNS}-{os.geteuid()}'), ''))
    if reason:
        places.append((here, ''))  # a network disk is better than none
    return places


def per_job(environ: Mapping[str, str], temporary: str) -> bool:
    """True for a temporary folder that SLURM wipes when the job ends.

    Args:
        environ: The launcher's environment.
        temporary: The folder.
    """
    job = environ.get('SLURM_JOB_ID')
    return bool(job) and str(job) in temporary


def _ours_or_free(path: str) -> bool:
    try:
        return os.lstat(path).st_uid == os.geteuid()
    except OSError:
        return True


def _at(run: Run, path: str) -> RunFolder:
    """Make or join the folder the user named."""
    path = os.path.realpath(path)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if _create(run, path):
            return RunFolder(path, True)
    except OSError as error:
        raise RunError(f'run folder {path} cannot be made: {error.strerror or error}') from None
    theirs = read_key(path)
    folder = RunFolder(path, False)
    if theirs and _same(run, theirs) and (run.strong or _fresh(folder, theirs)):
        _adopt(run, theirs)
        return folder
    if theirs:
        what = f'belongs to another run (id {theirs.get("id", "?")})'
    else:
        what = 'is not empty and not the folder of a run'
    raise RunError(
        f'run folder {path} {what}\n    name another one with --run-dir, or remove it; '
        f'`lens-instrument --replay` works on an existing run'
    )


def _under(run: Run, parent: str, note: str) -> RunFolder:
    """Make the run's folder under `lens-runs`, or join the one that other launchers of this run made."""
    os.makedirs(parent, exist_ok=True)
    for name in _IGNORES:
        _write_new(os.path.join(parent, name), '*\n')
    if run.join and not run.strong:
        return _under_lock(run, parent, note)
    return _numbered(run, parent, note)


def _numbered(run: Run, parent: str, note: str) -> RunFolder:
    name = ''.join(c if c.isalnum() or c in '._-' else '_' for c in run.run_id).lstrip('.')[:100] or 'run'
    number = 0
    while True:
        path = os.path.join(parent, f'{name}.{number}' if number else name)
        if _create(run, path):
            return RunFolder(path, True, note)
        theirs = read_key(path)
        if theirs and run.strong and _same(run, theirs):
            _adopt(run, theirs)
            return RunFolder(path, False, note)
        number += 1


def _under_lock(run: Run, parent: str, note: str) -> RunFolder:
    """Weak keys: the first launcher notes its folder in a pointer file; the others join while one of them is alive."""
    import fcntl

    pointer = os.path.join(parent, f'.join-{digest(run.join, 8)}')
    lock = os.open(pointer, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:
            return _numbered(run, parent, note)  # no locks on this file system: a folder of its own
        name = os.pread(lock, 4096, 0).decode('utf-8', 'surrogateescape')
        if name:
            folder = RunFolder(os.path.join(parent, name), False, note)
            theirs = read_key(folder.path)
            if theirs and _same(run, theirs) and any(alive for _, _, alive in folder.launchers()):
                _adopt(run, theirs)
                folder.register('')  # before the lock goes: the next one must find somebody alive
                return folder
        folder = _numbered(run, parent, note)
        folder.register('')
        os.ftruncate(lock, 0)
        os.pwrite(lock, os.path.basename(folder.path).encode('utf-8', 'surrogateescape'), 0)
        return folder
    finally:
        os.close(lock)


def _create(run: Run, path: str) -> bool:
    """Make the folder with all that belongs in it from the start; False when something is there already.

    It is filled under another name and renamed, so nobody ever sees half of it. Renaming onto an empty folder is
    allowed by POSIX: a folder the user made beforehand is taken.
    """
    fresh = os.path.join(os.path.dirname(path), f'.new-{process.hostname()}-{os.getpid()}-{os.urandom(4).hex()}')
    os.mkdir(fresh, 0o700)
    try:
        for name in _IGNORES:
            _write(os.path.join(fresh, name), '*\n')
        _write(
            os.path.join(fresh, KEY_FILE),
            f'id {run.run_id}\nattempt {run.attempt}\nnonce {run.nonce}\nstarted {run.started_wall_ns}\n'
            f'join {digest(run.join, 16) if run.join else ""}\nhost {process.hostname()}\npid {os.getpid()}\n',
        )
        try:
            os.rename(fresh, path)
        except (FileExistsError, NotADirectoryError):
            return False
        except OSError as error:
            if error.errno in (39, 17):  # ENOTEMPTY, EEXIST
                return False
            raise
        return True
    finally:
        _discard(fresh)


def _discard(path: str) -> None:
    if not os.path.isdir(path):
        return
    for name in (*_IGNORES, KEY_FILE):
        try:
            os.unlink(os.path.join(path, name))
        except OSError:
            pass
    try:
        os.rmdir(path)
    except OSError:
        pass


def read_key(path: str) -> dict[str, str]:
    """What a run folder says of its run, {} when it is none.

    Args:
        path: The folder.
    """
    try:
        with open(os.path.join(path, KEY_FILE), encoding='utf-8', errors='surrogateescape') as text:
            return {name: value for name, _, value in (line.rstrip('\n').partition(' ') for line in text)}
    except OSError:
        return {}


def _same(run: Run, theirs: dict[str, str]) -> bool:
    return bool(run.join) and theirs.get('join') == digest(run.join, 16)


def _fresh(folder: RunFolder, theirs: dict[str, str]) -> bool:
    started = int(theirs.get('started', '0')) / 1e9
    return time() - started < _GRACE_SECONDS or any(alive for _, _, alive in folder.launchers())


def _adopt(run: Run, theirs: dict[str, str]) -> None:
    """Be the run the folder belongs to: its creator's id, attempt and nonce."""
    run.run_id = theirs['id']
    run.attempt = int(theirs['attempt'])
    run.nonce = theirs['nonce']


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, text.encode('utf-8', 'surrogateescape'))
    finally:
        os.close(fd)


def _write_new(path: str, text: str) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        return
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
