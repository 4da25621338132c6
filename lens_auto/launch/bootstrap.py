# SPDX-License-Identifier: Apache-2.0
"""Where stage 1 lies, with its bytecode beside it: compiled at every start it would cost a fifth of that start."""

from __future__ import annotations

import os
import sys

# The import system itself, frozen and loaded; importlib.util and py_compile would cost milliseconds.
from _frozen_importlib_external import MAGIC_NUMBER, cache_from_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = 'sitecustomize.py'


class NoBootstrap(Exception):
    """Stage 1 cannot be put where processes would find it."""


def home() -> str:
    """The folder of the package itself, absolute: every process of the run loads exactly this copy."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def folder(environ: Mapping[str, str]) -> str:
    """The folder to put in front of PYTHONPATH: stage 1's own, or a private copy where that cannot hold bytecode.

    Raises:
        NoBootstrap: There is no stage 1, or no place for its copy.
    """
    original = source()
    # A colon separates the entries of PYTHONPATH and cannot be escaped.
    if ':' not in original and has_bytecode(f'{original}/{FILE}'):
        return original
    return _copy(original, environ)


def source() -> str:
    """Stage 1 as installed: inside the package in a wheel, beside it in a checkout."""
    package = home()
    for path in (f'{package}/_data/sitecustomize', f'{os.path.dirname(package)}/sitecustomize'):
        if os.path.isfile(f'{path}/{FILE}'):
            return path
    raise NoBootstrap(f'{package}/_data/sitecustomize/{FILE} is missing: lens-auto is not installed completely')


def has_bytecode(path: str) -> bool:
    """Whether the bytecode this Python's own children would read for `path` is there and fits; written if it can be.

    Other versions of Python write their own at their first start, where the folder lets them.
    """
    cached = cache_from_source(path)
    try:
        stat = os.stat(path)
        header = MAGIC_NUMBER + b'\0\0\0\0' + _word(int(stat.st_mtime)) + _word(stat.st_size)
    except OSError:
        return False
    try:
        with open(cached, 'rb') as file:
            found = file.read(16)
        # Another kind of bytecode (checked by hash, as some distributions build it) is for the import system to judge.
        if found == header or (found[:4] == MAGIC_NUMBER and found[4:8] != b'\0\0\0\0'):
            return True
    except OSError:
        pass
    return _compile(path, cached, header)


def _word(value: int) -> bytes:
    return (value & 0xFFFFFFFF).to_bytes(4, 'little')


def _compile(path: str, cached: str, header: bytes) -> bool:
    from marshal import dumps

    scratch = f'{cached}.{os.getpid()}'
    try:
        with open(path, 'rb') as file:
            code = compile(file.read(), path, 'exec', dont_inherit=True)
        os.makedirs(os.path.dirname(cached), exist_ok=True)
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, os.stat(path).st_mode & 0o666)
        with open(descriptor, 'wb') as out:
            out.write(header + dumps(code))
        os.replace(scratch, cached)  # whole or not at all: other launchers read it meanwhile
    except (OSError, SyntaxError, ValueError):
        try:
            os.unlink(scratch)
        except OSError:
            pass
        return False
    return True


def cache_folder(environ: Mapping[str, str]) -> str:
    """Our private folder in the user's cache, made if need be.

    Raises:
        NoBootstrap: It is somebody else's, or cannot be made.
    """
    base = environ.get('XDG_CACHE_HOME', '')
    if not base.startswith('/'):
        base = os.path.join(os.path.expanduser('~'), '.cache')
    candidates = [f'{base}/lens-auto', f'{environ.get("TMPDIR") or "/tmp"}/lens-auto-{os.getuid()}']
    for path in candidates:
        if not path.startswith('/') or ':' in path:
            continue
        try:
            os.makedirs(path, 0o700, exist_ok=True)
            stat = os.lstat(path)
        except OSError:
            continue
        # Code is run from here: nobody else may have put it there.
        if stat.st_uid == os.getuid() and stat.st_mode & 0o170000 == 0o040000 and os.access(path, os.W_OK):
            if stat.st_mode & 0o077:
                os.chmod(path, 0o700)
            return path
    raise NoBootstrap('no private folder for stage 1: tried ' + ', '.join(candidates))


def _copy(original: str, environ: Mapping[str, str]) -> str:
    with open(f'{original}/{FILE}', 'rb') as file:
        text = file.read()
    from _blake2 import blake2b

    # Named by content and Python: versions of lens-auto and interpreters do not overwrite each other's.
    name = blake2b(text + sys.implementation.cache_tag.encode(), digest_size=8).hexdigest()
    path = f'{cache_folder(environ)}/stage1-{name}'
    target = f'{path}/{FILE}'
    try:
        os.makedirs(path, 0o700, exist_ok=True)
        if not _holds(target, text):
            scratch = f'{target}.{os.getpid()}'
            with open(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'wb') as out:
                out.write(text)
            os.replace(scratch, target)
        has_bytecode(target)
    except OSError as error:
        raise NoBootstrap(f'stage 1 cannot be copied to {path}: {error.strerror}') from None
    return path


def _holds(path: str, text: bytes) -> bool:
    try:
        with open(path, 'rb') as file:
            return file.read() == text
    except OSError:
        return False
