# SPDX-License-Identifier: Apache-2.0
"""vLLM's own plugin hook: reaches an engine's processes where PYTHONPATH does not (`-I`, a cleaned environment).

vLLM calls `load` in each of its processes, by then with many of its modules imported. Where stage 1 has run, or no run
is under way, nothing happens. The package has to be installed in vLLM's environment for vLLM to find it.
"""

from __future__ import annotations

import os
import sys

from lens_auto.record.foreign import foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FILE = 'sitecustomize.py'
_END = '_here ='  # from here on stage 1 sees to the program's own sitecustomize, which has run long ago


def load() -> None:
    """Take part in the run that this process's environment tells of, if it does not yet."""
    if os.environ.get('LENS_ENABLED') != '1' or not os.environ.get('LENS_PLAN_REF') or _finder() is not None:
        return
    try:
        path = _stage_1()
        if path is None:
            return
        import ast  # in a process that has imported torch, it is there

        with open(path, 'rb') as source:
            tree = ast.parse(source.read(), path)
        end = next(at for at, node in enumerate(tree.body) if ast.unparse(node).startswith(_END))
        names: dict[str, Any] = {'__name__': 'lens_auto_stage_1', '__file__': path}
        exec(compile(ast.Module(tree.body[:end], []), path, 'exec'), names)
        names['_arm']()
        finder = _finder()
        if finder is not None:
            finder.wake()
    except Exception as error:
        if foreign(error):
            raise
        # Nobody is there yet to be told of a fault: this process is not part of the run, as its list says.


def _finder() -> Any:
    return next((finder for finder in sys.meta_path if hasattr(finder, 'wake') and hasattr(finder, 'awake')), None)


def _stage_1() -> str | None:
    home = os.environ.get('LENS_HOME', '')
    for folder in (f'{home}/_data/sitecustomize', f'{os.path.dirname(home)}/sitecustomize'):
        if os.path.isfile(f'{folder}/{_FILE}'):
            return f'{folder}/{_FILE}'
    return None
