# SPDX-License-Identifier: Apache-2.0
"""The environment of a traced process, made without the launcher: a benchmark measures one part at a time."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from lens_auto.rules import plan as plans  # noqa: E402


def rule(number: int, function: str, **changes: Any) -> dict[str, Any]:
    """A `function` rule of a compiled plan.

    Args:
        number: Makes its key.
        function: `module:qualname`.
        **changes: Fields that differ from the defaults.
    """
    module, _, qualname = function.partition(':')
    return {
        'key': f'{number:012x}',
        'file': 0,
        'line': number,
        'kind': 'function',
        'group': 'work',
        'bucket': None,
        'name': ('c', qualname),
        'attributes': {},
        'announce': True,
        'root': False,
        'native': False,
        'own_bucket': False,
        'inside_bucket': None,
        'within': (),
        'outside': (),
        'apply': 'wrap',
        'force': False,
        'budget': None,
        'only_from': None,
        'targets': ((module, qualname),),
        **changes,
    }


def environment(folder: Path, rules: list[dict[str, Any]]) -> dict[str, str]:
    """The launcher's variables for a process that records by these rules.

    Args:
        folder: Takes the plan and the spool.
        rules: Compiled rules.
    """
    spool = folder / 'spool'
    spool.mkdir(mode=0o700, exist_ok=True)
    file = {
        'path': 'bench.yaml',
        'framework': 'bench',
        'when': None,
        'groups': {'work': {'bucket': None}, 'off': {'bucket': None}},
        'presets': {'default': ('work',), 'all': '*'},
        'vars': {},
        'vocabularies': (),
        'native': None,
    }
    data = plans.dump({'format': plans.FORMAT, 'agent': '0', 'files': [file], 'rules': rules})
    (folder / 'plan').write_bytes(data)
    modules = sorted({module for one in rules for module, _ in one['targets']} | {'torch', *plans.RAY_MODULES})
    kept = {k: v for k, v in os.environ.items() if not k.startswith(('LENS_', 'OTEL_', 'PYTHON'))}
    return kept | {
        'PYTHONPATH': f'{REPOSITORY / "sitecustomize"}{os.pathsep}{Path(__file__).parent}',
        'LENS_ENABLED': '1',
        'LENS_HOME': str(REPOSITORY / 'lens_auto'),
        'LENS_MODULES': ','.join(modules),
        'LENS_PLAN_REF': f'{folder / "plan"}#{plans.sha256_hex(data)}',
        'LENS_SPOOL': str(spool),
        'LENS_RUN_ID': 'bench',
        'LENS_RUN_ROOT': f'{1:032x}-{2:016x}',
        'LENS_LAUNCHER_PID': str(os.getpid()),
        'LENS_SPAN_GROUPS': 'work',
        'LENS_EXPORT_STRATEGY': 'all_ranks',
    }
