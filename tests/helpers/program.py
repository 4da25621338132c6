# SPDX-License-Identifier: Apache-2.0
"""Runs a small program twice, without us and under a hand-made plan, and hands back what both did.

No launcher takes part: the environment it would set is set here, so that a test says exactly what stage 1 and 2 get.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lens_auto.rules import plan
from tests.helpers.journal import Journal, journal

ROOT = Path(__file__).resolve().parents[2]
STAGE_1 = ROOT / 'sitecustomize'
HOME = ROOT / 'lens_auto'
SUPPORTED = ('3.10', '3.11', '3.12', '3.13')
PATIENCE = 60.0
_ADDRESS = re.compile(' at 0x[0-9a-f]+')


@functools.cache
def interpreter(version: str) -> str | None:
    """The executable of a Python version found on this machine by its usual name, or None."""
    if version == '{}.{}'.format(*sys.version_info[:2]):
        return sys.executable
    found = shutil.which(f'python{version}')
    candidates = [found] if found else []
    # A version manager's shims answer only for the versions made current, but the versions lie beside them.
    if found and 'shims' in Path(found).parts:
        versions = Path(found).parent.parent / 'versions'
        candidates = [str(p) for p in sorted(versions.glob(f'{version}*/bin/python{version}'))] + candidates
    for path in candidates:
        tried = subprocess.run([path, '-c', 'import sys; print("%d.%d" % sys.version_info[:2])'], capture_output=True)
        if tried.stdout.decode().strip() == version:
            return path
    return None


def python(version: str) -> str:
    """As `interpreter`; a test on an absent one is skipped, and says so."""
    found = interpreter(version)
    if found is None:
        pytest.skip(f'python{version} is not on this machine')
    return found


every_python = pytest.mark.parametrize('version', SUPPORTED)


def const(value: Any) -> tuple[Any, ...]:
    return ('c', value)


def _rule(kind: str, key: str, **fields: Any) -> dict[str, Any]:
    rule = {
        'key': (key * 12)[:12],
        'file': 0,
        'line': 1,
        'kind': kind,
        'group': None,
        'bucket': None,
        'name': const(key),
        'attributes': {},
        'announce': True,
        'root': False,
        'budget': None,
        'only_from': None,
        'label_arg': None,
        'current': False,
        'native': False,
        'own_bucket': False,
        'inside_bucket': None,
        'within': (),
        'outside': (),
        'apply': 'wrap',
        'force': False,
        'stop_at': 'return',
    }
    if isinstance(fields.get('name'), str):
        fields['name'] = const(fields['name'])
    return {**rule, **fields}


def _pair(target: str) -> tuple[str, str]:
    module, _, qualname = target.partition(':')
    return module, qualname


def function(key: str, *targets: str, **fields: Any) -> dict[str, Any]:
    """A `function` rule on `module:qualname` targets; its span is named `key` unless `name` says otherwise."""
    return _rule('function', key, targets=tuple(map(_pair, targets)), **fields)


def place(kind: str, key: str, target: str, match: str, **fields: Any) -> dict[str, Any]:
    """A `loop`, `block` or `call` rule on `module:qualname`, a module or a script."""
    usual = {'targets': (_pair(target),), 'match': match, 'expect': (1, 1)}
    return _rule(kind, key, **{**usual, **fields})


def label(name: str, /, **fields: Any) -> dict[str, Any]:
    entry = {'group': None, 'bucket': None, 'name': const(name), 'attributes': {}}
    entry |= {'drop': False, 'current': False, 'root': False, 'announce': True}
    entry |= {'native': False, 'own_bucket': False, 'continues_over': None}
    return {**entry, **fields}


def timer(
    key: str,
    with_: Sequence[str] = (),
    pair: Sequence[tuple[str, str]] = (),
    labels: Mapping[str, Any] = {},
    **fields: Any,
) -> dict[str, Any]:
    """A `timer` rule; `pair` holds (`module:start`, `stop`)."""
    parts = {'with': tuple(map(_pair, with_)), 'pair': tuple((*_pair(start), stop) for start, stop in pair)}
    return _rule('timer', key, labels=dict(labels), **parts, **fields)


def interval(key: str, start: str = '', stop: str = '', lap: str = '', **fields: Any) -> dict[str, Any]:
    parts = {
        part: (_pair(target),) if target else () for part, target in (('start', start), ('stop', stop), ('lap', lap))
    }
    return _rule('interval', key, **parts, **fields)


def metric(name: Any, instrument: str = 'gauge', unit: str | None = None, **attributes: Any) -> dict[str, Any]:
    tree = const(name) if isinstance(name, str) else name
    return {'name': tree, 'instrument': instrument, 'unit': unit, 'attributes': attributes, 'nonzero': False}


def logger(key: str, target: str, metrics: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    usual = {'metrics_arg': None, 'prefix_arg': None, 'prefixes': None}
    return _rule('logger', key, targets=(_pair(target),), metrics=dict(metrics), **{**usual, **fields})


def measures(key: str, target: str, *entries: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A `metric` rule; each entry has at least a `name` and a `value`."""
    usual = {'instrument': 'histogram', 'unit': '', 'attributes': {}}
    made = [{**usual, **entry, 'name': const(entry['name'])} for entry in entries]
    return _rule('metric', key, targets=(_pair(target),), measures=made, **fields)


def resource(key: str, target: str, settings: Any = None, **attributes: Any) -> dict[str, Any]:
    return _rule('resource', key, targets=(_pair(target),), settings=settings, attributes=attributes)


def plan_of(rules: Iterable[dict[str, Any]], groups: Iterable[str] = (), **fields: Any) -> dict[str, Any]:
    """A plan of one rule file."""
    names = {name: {'bucket': None} for name in groups}
    file = {'path': 'rules.yaml', 'framework': 'demo', 'when': None, 'vars': {}, 'native': None}
    file['vocabularies'] = ()
    file |= {'groups': names, 'presets': {'all': '*', 'default': ()}, **fields}
    return {'format': plan.FORMAT, 'agent': '0', 'files': [file], 'rules': list(rules)}


@dataclass
class Outcome:
    """What a program printed, how it ended and what it journalled."""

    stdout: str
    stderr: str
    code: int
    journal: Journal
    processes: list[list[str]]

    def visible(self) -> tuple[str, str, int]:
        """All that a user of the program can see of it, addresses aside."""
        return _ADDRESS.sub('', self.stdout), _ADDRESS.sub('', self.stderr), self.code


class Program:
    """Files in a folder, run with and without us.

    Args:
        folder: An empty folder of the test.
        files: Sources by path, relative to the folder; dedented.
    """

    def __init__(self, folder: Path, files: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.app = folder / 'app'
        self.spool = folder / 'spool'
        self.app.mkdir(parents=True, exist_ok=True)
        self.write(files or {})

    def write(self, files: Mapping[str, str]) -> Program:
        for name, text in files.items():
            path = self.app / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text).lstrip('\n'))
        return self

    def environment(self, rules: Iterable[dict[str, Any]] | dict[str, Any], modules: str = '') -> dict[str, str]:
        """What the launcher would set; the spool is emptied."""
        made: dict[str, Any] = rules if isinstance(rules, dict) else plan_of(rules)  # pyright: ignore[reportAssignmentType]
        data = plan.dump(made)
        path = self.folder / 'plan'
        path.write_bytes(data)
        shutil.rmtree(self.spool, ignore_errors=True)
        self.spool.mkdir(0o700)
        named = sorted({t[0] for r in made['rules'] for t in _targets(r)} | {'torch'})
        names = modules or ','.join(name for name in named if not name.endswith('.py'))
        return {
            'PYTHONPATH': f'{STAGE_1}:{self.app}',
            'LENS_ENABLED': '1',
            'LENS_HOME': str(HOME),
            'LENS_MODULES': names,
            'LENS_SCRIPTS': ':'.join(name for name in named if name.endswith('.py')),
            'LENS_CACHE': str(self.folder / 'cache'),
            'LENS_PLAN_REF': f'{path}#{plan.sha256_hex(data)}',
            'LENS_SPOOL': str(self.spool),
            'LENS_RUN_ID': 'run',
            'LENS_RUN_ROOT': f'{"ab" * 16}-{"cd" * 8}',
            'LENS_SPAN_GROUPS': 'all',
            'LENS_EXPORT_STRATEGY': 'all_ranks',
            'LENS_LAUNCHER_PID': str(os.getpid()),
        }

    def plain(self, *command: str, python: str = sys.executable, **environ: str) -> Outcome:
        """Run `python COMMAND` (default `main.py`) without us."""
        return self._run(python, command, {'PYTHONPATH': str(self.app), **environ})

    def traced(
        self,
        rules: Iterable[dict[str, Any]] | dict[str, Any],
        *command: str,
        python: str = sys.executable,
        modules: str = '',
        **environ: str,
    ) -> Outcome:
        """Run `python COMMAND` (default `main.py`) under a plan; an empty value in `environ` unsets a variable."""
        return self._run(python, command, {**self.environment(rules, modules), **environ})

    def _run(self, python: str, command: Sequence[str], environ: Mapping[str, str]) -> Outcome:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(('LENS_', 'PYTHON', 'COV_'))}
        env = {**inherited, 'PYTHONHASHSEED': '0', **environ}
        done = subprocess.run(
            [python, *(command or ('main.py',))],
            cwd=self.app,
            env={name: value for name, value in env.items() if value},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        roll = self.spool / 'processes.tsv'
        rows = [line.split('\t') for line in roll.read_text().splitlines()] if roll.exists() else []
        return Outcome(done.stdout, done.stderr, done.returncode, journal(self.spool), rows)


def _targets(rule: dict[str, Any]) -> list[tuple[str, ...]]:
    return [target for part in ('targets', 'with', 'pair', 'start', 'stop', 'lap') for target in rule.get(part, ())]
