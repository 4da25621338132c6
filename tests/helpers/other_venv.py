# SPDX-License-Identifier: Apache-2.0
"""A second venv that has the ray of another one, and nothing of ours."""

from __future__ import annotations

import subprocess
from pathlib import Path

_OURS = ('lens', '__editable__', '_lens', 'distutils-precedence')


def other_venv(folder: Path, python: str) -> str:
    """Make a venv in `folder` whose packages are those of `python`'s, linked one by one; returns its interpreter."""
    subprocess.run([python, '-m', 'venv', '--without-pip', str(folder)], check=True)
    asked = 'import sysconfig; print(sysconfig.get_path("purelib"))'
    theirs, own = (
        Path(subprocess.run([of, '-I', '-c', asked], check=True, capture_output=True, text=True).stdout.strip())
        for of in (python, str(folder / 'bin' / 'python'))
    )
    for entry in theirs.iterdir():
        if not entry.name.startswith(_OURS) and not (own / entry.name).exists():
            (own / entry.name).symlink_to(entry)
    return str(folder / 'bin' / 'python')
