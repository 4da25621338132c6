# SPDX-License-Identifier: Apache-2.0
"""Which version of a package is installed, without importing it."""

from __future__ import annotations

import os
import sys

from lens_auto.record.foreign import foreign


def version(package: str) -> str | None:
    """The version of the distribution named like a package: of the first folder on `sys.path` that holds its metadata.

    By hand: `importlib.metadata` imports a dozen modules by name (csv, email, json), any of which may be the program's
    own, and takes 60 ms where many packages are installed. Nothing is imported.

    Args:
        package: `torch`, `transformer_engine`; `-`, `_` and `.` are the same.

    Returns:
        The version as it is written there; None where there is no such distribution.
    """
    wanted = _normal(package)
    for folder in sys.path:
        try:
            names = os.listdir(folder or '.')
        except OSError as error:
            if foreign(error):
                raise
            continue
        for name in names:
            stem, dot, kind = name.rpartition('.')
            if dot and kind in ('dist-info', 'egg-info') and _normal(stem.partition('-')[0]) == wanted:
                found = _of(os.path.join(folder, name, 'METADATA' if kind == 'dist-info' else 'PKG-INFO'))
                if found is not None:
                    return found
    return None


def _normal(name: str) -> str:
    return '_'.join(part for part in name.lower().replace('-', '_').replace('.', '_').split('_') if part)


def _of(path: str) -> str | None:
    try:
        with open(path, 'rb') as metadata:
            for line in metadata:
                if line[:8].lower() == b'version:':
                    return line[8:].strip().decode('ascii', 'replace')
                if not line.strip():
                    break
    except OSError as error:
        if foreign(error):
            raise
    return None
