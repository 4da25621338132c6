# SPDX-License-Identifier: Apache-2.0
"""A plan written by the launcher's Python is read by whatever Python the run uses, with next to no imports."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lens_auto.rules import plan
from lens_auto.rules.plan import PlanError

ROOT = Path(plan.__file__).parents[2]
PLAN = {
    'format': 1,
    'agent': '1.0',
    'files': [{'path': 'a', 'groups': {'é': {'bucket': None}}, 'vocabularies': ()}],
    'rules': [{'file': 0, 'name': ('fmt', (('c', 'rl.'), ('var', 'x'))), 'n': (-1, 2**62, 0.5, True, None)}],
}
READ = """
import sys
before = set(sys.modules)
sys.path.insert(0, sys.argv[3])
from lens_auto.rules import plan, selection
print(repr(plan.load(sys.argv[1], sys.argv[2])))
print(*sorted(name for name in set(sys.modules) - before if not name.startswith('lens_auto')))
"""
CHEAP = {'__future__', '_sha2', '_sha256'}


def pythons() -> list[str]:
    found = [shutil.which(f'python3.{minor}') for minor in range(10, 15)]
    versions = Path.home().glob('.pyenv/versions/3.1*/bin/python')
    # A version manager's stand-ins fail unless that version is switched on.
    named = {name for name in found if name and '/shims/' not in name}
    return sorted({sys.executable, *named, *map(str, versions)})


@pytest.mark.parametrize('python', pythons())
def test_every_python_reads_the_plan(tmp_path: Path, python: str) -> None:
    if subprocess.run([python, '-c', ''], capture_output=True).returncode:
        pytest.skip('this interpreter does not start')
    data = plan.dump(PLAN)
    file = tmp_path / 'x.plan'
    file.write_bytes(data)
    told = subprocess.run(
        [python, '-c', READ, str(file), plan.sha256_hex(data), str(ROOT)],
        capture_output=True,
        text=True,
        check=True,
    )
    shown, imported = told.stdout.splitlines()
    assert shown == repr(PLAN)
    assert set(imported.split()) <= CHEAP


def test_a_plan_that_cannot_be_used_says_why(tmp_path: Path) -> None:
    data = plan.dump(PLAN)
    cases = {
        'changed': (data, '0' * 64),
        'not_a_plan': (b'framework: t\n', None),
        'format': (data.replace(b'lens-plan\n\x03', b'lens-plan\n\x02'), None),
    }
    for reason, (stored, sha256) in cases.items():
        file = tmp_path / reason
        file.write_bytes(stored)
        with pytest.raises(PlanError) as raised:
            plan.load(str(file), sha256 or plan.sha256_hex(stored))
        assert raised.value.reason == reason
    for end in range(len(data)):
        with pytest.raises(PlanError, match='not_a_plan'):
            plan.parse(data[:end])
    with pytest.raises(PlanError, match='missing'):
        plan.load(str(tmp_path / 'none'), '')
    with pytest.raises(PlanError, match='unreadable'):
        plan.load(str(tmp_path), '')
