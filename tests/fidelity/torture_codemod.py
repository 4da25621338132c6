# SPDX-License-Identifier: Apache-2.0
"""Writes a span into every function, loop and block of the standard library and of twenty large packages, and takes it
out again.

A part of `make torture`; `python torture_codemod.py [NAMES]` runs it alone, on the packages named; `stdlib` is the
standard library. For each module: what was written is taken out, byte for byte; and written again on top of itself it
changes nothing.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from lens_auto.codemod.index import Index  # noqa: E402
from lens_auto.codemod.source import Source, Unreadable  # noqa: E402
from lens_auto.codemod.style import STYLES  # noqa: E402
from lens_auto.codemod.undo import undo  # noqa: E402
from lens_auto.codemod.wish import Refused  # noqa: E402
from lens_auto.codemod.writing import Written, write  # noqa: E402
from tests.fidelity.torture import Looked, libraries, packages, table  # noqa: E402
from tests.unit.codemod.everything import wishes  # noqa: E402

STANDARD = 'stdlib'


def applied(source: Source) -> tuple[Source, Written]:
    """What `lens-codemod apply` does to a file that may have been written: takes that out, and writes anew.

    Args:
        source: The file.

    Returns:
        The file without what was in it, and what is written.
    """
    undone = undo(source)
    plain = source if undone is None else Source(source.path, source.data(undone.text))
    index = Index(plain)
    return plain, write(plain, index, wishes(index), STYLES['lens'])


def look(path: Path) -> Looked:
    """Apply, apply again, revert.

    Args:
        path: The module.
    """
    warnings.simplefilter('ignore')
    data = path.read_bytes()
    try:
        compile(data, str(path), 'exec', dont_inherit=True)
    except (SyntaxError, ValueError):
        return Looked(0, [], 'no Python of this version')
    try:
        source, once = applied(Source(str(path), data))
        if not once.places:
            return Looked(0, [] if source.data(once.text) == data else ['nothing is written, and it differs'])
        changed = source.data(once.text)
        back, twice = applied(Source(str(path), changed))
        wrong: list[str] = []
        if back.data(back.text) != data:
            wrong.append('what is taken out is not what was put in')
        if back.data(twice.text) != changed:
            wrong.append('written twice it is not what it is written once')
        return Looked(len(once.places), wrong)
    except (Refused, Unreadable) as refused:
        return Looked(0, [], f'left alone: {refused}')
    except Exception as error:
        return Looked(0, [f'{type(error).__name__}: {error}'])


def main(*names: str) -> int:
    """See the module."""
    title = 'codemod, on {}.{}.{}'.format(*sys.version_info)
    modules = {'standard library': libraries()} if STANDARD in names or not names else {}
    named = [name for name in names if name != STANDARD]
    return bool(table(title, {**modules, **(packages(named) if named or not names else {})}, look))


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
