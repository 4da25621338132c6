# SPDX-License-Identifier: Apache-2.0
"""What a traced process imports for us: nothing from outside the standard library, and none of its heavy parts.

Two readings of the same rule. The source is read for every import there is, the lazy ones included, which nothing may
run in a test; and each module is imported in a bare interpreter, which also shows what its imports import.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / 'lens_auto'

# Parts of `record` that only the collector and people reading a journal load.
READING_SIDE = {'lens_auto.record.reader', 'lens_auto.record.__main__'}
# Loaded by a traced process only where the user asked for what it does: print every span as a line of JSON.
ON_REQUEST = {'lens_auto.record.line'}
# Part of the interpreter under a name that depends on its version.
STANDARD = sys.stdlib_module_names | {'_sha2', '_sha256'}
# Each costs a process that it would not otherwise have imported 0.5 to 10 ms, at every start of every worker.
HEAVY = (
    *('argparse', 'ast', 'collections', 'contextlib', 'copy', 'ctypes', 'dataclasses', 'datetime', 'enum', 'functools'),
    *('fnmatch', 'hashlib', 'importlib.metadata', 'importlib.util', 'inspect', 'json', 'logging', 'pathlib', 'pickle'),
    *('random', 're', 'shutil', 'signal', 'socket', 'string', 'subprocess', 'tempfile', 'textwrap', 'threading'),
    *('tokenize', 'traceback', 'typing', 'uuid', 'yaml', 'zipfile', 'zlib'),
)


def name_of(path: Path) -> str:
    parts = path.relative_to(REPOSITORY).with_suffix('').parts
    return '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)


TRACED = {
    name: path
    for path in [
        PACKAGE / '__init__.py',
        PACKAGE / 'api.py',
        PACKAGE / 'source.py',
        *(
            path
            for part in ('hook', 'http', 'ray', 'record', 'rewrite', 'vllm', 'wrap')
            for path in sorted((PACKAGE / part).rglob('*.py'))
        ),
        *(PACKAGE / 'rules' / name for name in ('__init__.py', 'plan.py', 'registry.py', 'selection.py')),
        *(PACKAGE / 'settings' / name for name in ('__init__.py', 'exports.py', 'fields.py', 'project.py')),
    ]
    if (name := name_of(path)) not in READING_SIDE
}
# Loaded once the program has imported its own OpenTelemetry.
BRIDGE = {name_of(path): path for path in sorted((PACKAGE / 'bridge').rglob('*.py'))}


def imports(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Line and absolute name of every import that can run; those under `if TYPE_CHECKING:` cannot."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == 'TYPE_CHECKING':
            for branch in node.orelse:
                yield from imports(branch, package)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split('.')[: len(package.split('.')) - node.level + 1] if node.level else []
            module = '.'.join([*above, *([node.module] if node.module else [])])
            # `from . import fields` imports a module by its name in a package, `from .fields import FIELDS` does not.
            inner = [f'{module}.{alias.name}' for alias in node.names]
            yield from ((node.lineno, name) for name in ([n for n in inner if is_ours(n)] or [module]))
        else:
            yield from imports(node, package)


def is_ours(name: str) -> bool:
    path = REPOSITORY.joinpath(*name.split('.'))
    return name.split('.')[0] == 'lens_auto' and (path.is_dir() or path.with_suffix('.py').exists())


@pytest.mark.parametrize('name', [*TRACED, *BRIDGE])
def test_source_names_only_the_standard_library_and_the_traced_part(name: str) -> None:
    path = {**TRACED, **BRIDGE}[name]
    known = STANDARD | ({'opentelemetry'} if name in BRIDGE else set())
    package = name if path.name == '__init__.py' else name.rpartition('.')[0]

    foreign = [
        f'{path.relative_to(REPOSITORY)}:{line} imports {imported}'
        for line, imported in imports(ast.parse(path.read_text()), package)
        if not (imported in {*TRACED, *BRIDGE} if is_ours(imported) else imported.split('.')[0] in known)
    ]

    assert foreign == []


@pytest.mark.parametrize('name', sorted(TRACED.keys() - ON_REQUEST))
def test_importing_it_loads_no_heavy_module(name: str) -> None:
    program = f"""
import sys
sys.path.insert(0, {str(REPOSITORY)!r})
import os
before = set(sys.modules)
import {name}
print(*sorted(set(sys.modules) - before))
"""
    # Isolated and without `site`: what the interpreter itself needs, and nothing that a venv's .pth files bring.
    done = subprocess.run([sys.executable, '-I', '-S', '-c', program], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert [module for module in loaded if module in HEAVY] == []
    assert [module for module in loaded if module.startswith('lens_auto') and module not in TRACED] == []


def test_stage_one_imports_os_and_sys_alone() -> None:
    source = (REPOSITORY / 'sitecustomize' / 'sitecustomize.py').read_text()
    at_start = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]

    names = {name for node in at_start for _, name in imports(ast.Module([node], []), '')}
    # The last one is the user's own: by then ours has left the path.
    assert names == {'os', 'sys', 'sitecustomize'}
