# SPDX-License-Identifier: Apache-2.0
"""Where the journals of this node lie while the run is on: a private folder on a local disk."""

from __future__ import annotations

import os
import stat

from lens_auto.collect import mounts
from lens_auto.collect.folder import RunFolder, per_job
from lens_auto.collect.run import Run, RunError, digest
from lens_auto.record import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


PLAN = 'plan'
"""The compiled rules, beside the journals: a cache may be cleaned while the run is on."""


class Spool:
    """The launcher's own folder of journals.

    Attributes:
        path: Its absolute path, made 0700.
        note: What a user should know of the choice, or ''.
    """

    __slots__ = ('note', 'path')

    def __init__(self, path: str, note: str = '') -> None:
        self.path = path
        self.note = note


def choose(environ: Mapping[str, str], run: Run, folder: RunFolder) -> Spool:
    """Make the spool of this launcher and register it in the run folder.

    LENS_SPOOL, else a local TMPDIR, else the system's temporary folders; never a RAM disk or a network file system
    unless LENS_SPOOL asks. Where SLURM wipes TMPDIR with the job, the run folder itself, unless that is on a network.

    Args:
        environ: The launcher's environment.
        run: The run.
        folder: Its folder.

    Raises:
        RunError: No folder can be made, or the one found is not ours alone.
    """
    spool = _choose(environ, run, folder)
    folder.register(spool.path)
    return spool


def _choose(environ: Mapping[str, str], run: Run, folder: RunFolder) -> Spool:
    name = f'{digest(run.run_key, 6)}-{process.hostname()}-{os.getpid()}'
    asked = environ.get('LENS_SPOOL')
    if asked:
        try:
            os.makedirs(asked, 0o700, exist_ok=True)
            return Spool(private(os.path.join(os.path.abspath(asked), name)))
        except OSError as error:
            raise RunError(f'LENS_SPOOL={asked}: {error.strerror or error}') from None
    temporary = environ.get('TMPDIR') or '/tmp'
    wiped = per_job(environ, temporary)
    in_folder = os.path.join(folder.path, 'spool-' + name)
    if wiped and mounts.kind_of(folder.path) == mounts.DISK:
        return Spool(private(in_folder))
    reasons: list[str] = []
    for base in dict.fromkeys((temporary, '/tmp', '/var/tmp')):
        kind = mounts.kind_of(base)
        if kind != mounts.DISK:
            reasons.append(f'{base} is on a {kind}')
            continue
        try:
            path = private(os.path.join(_own_base(base), name))
        except OSError as error:
            reasons.append(f'{base}: {error.strerror or error}')
            continue
        note = f'journals are in {path}, which SLURM wipes with the job' if wiped and base == temporary else ''
        return Spool(path, note)
    try:
        path = private(in_folder)
    except OSError as error:
        reasons.append(f'{folder.path}: {error.strerror or error}')
        raise RunError('no place for journals; name one with LENS_SPOOL\n    ' + '\n    '.join(reasons)) from None
    kind = mounts.kind_of(folder.path)
    return Spool(path, '' if kind == mounts.DISK else f'journals are in {path}, on a {kind}: ' + '; '.join(reasons))


def keep_plan(spool: str, path: str) -> str:
    """Put the compiled plan into the spool; the answer is where it is then.

    Args:
        spool: The spool.
        path: The plan as the cache has it; never changed there, only replaced.

    Raises:
        OSError: It cannot be read or stored.
    """
    kept = os.path.join(spool, PLAN)
    try:
        os.link(path, kept)
    except OSError:  # another disk, or one without links
        from lens_auto.collect.store import write_whole

        with open(path, 'rb') as file:
            write_whole(kept, file.read(), os.O_EXCL)
    return kept


def private(path: str) -> str:
    """Make a folder of mode 0700, or take it when it is a real folder of ours that nobody else can enter.

    Args:
        path: The folder.

    Raises:
        OSError: It cannot be made, or is a link, another user's, or open to others.
    """
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    # Opened without following links and asked by descriptor: what is checked is what is there.
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
    finally:
        os.close(fd)
    if status.st_uid != os.geteuid():
        raise PermissionError(1, f'{path} belongs to uid {status.st_uid}')
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise PermissionError(1, f'{path} is open to others (mode {stat.S_IMODE(status.st_mode):o})')
    return path


def _own_base(base: str) -> str:
    """This user's folder under a shared temporary one; another name when somebody sits on ours."""
    path = os.path.join(base, f'lens-{os.geteuid()}')
    try:
        return private(path)
    except OSError:
        return private(f'{path}-{os.urandom(4).hex()}')
