# SPDX-License-Identifier: Apache-2.0
"""The plan cache: what it reuses, what makes it compile again, and what it does where it cannot be."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lens_auto.rules import finding, plan, plan_cache
from lens_auto.rules.errors import RuleErrors
from lens_auto.rules.plan import OTEL_MODULES, RAY_MODULES
from lens_auto.rules.plan_cache import Compiled

RULES = 'framework: t\nrules:\n- {kind: function, target: m:f, group: step, name: rl.f}\n'
ROOT = Path(plan.__file__).parents[2]


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / 'my.yaml'
    file.write_text(RULES)
    return file


def obtain(tmp_path: Path, rules: Path, agent: str = '1', scan: tuple[str, ...] = ()) -> Compiled:
    sources = finding.Sources(((str(rules), '--rules'),), scan, ())
    return plan_cache.compiled(sources, agent, str(tmp_path / 'cache' / 'lens-auto'), str(tmp_path / 'fallback'))


def test_a_second_launch_takes_the_plan_of_the_first(tmp_path: Path, rules: Path) -> None:
    first, second = obtain(tmp_path, rules), obtain(tmp_path, rules)
    assert (first.cached, second.cached) == (False, True)
    assert (first.path, first.sha256, first.modules, first.files) == (
        second.path,
        second.sha256,
        second.modules,
        second.files,
    )
    assert second.modules == tuple(sorted(('m', 'torch', *OTEL_MODULES, *RAY_MODULES)))
    assert second.files == ((str(rules), 't', None, '--rules'),)
    assert plan.load(second.path, second.sha256)['rules'][0]['targets'] == (('m', 'f'),)


def test_the_folder_and_its_files_are_private(tmp_path: Path, rules: Path) -> None:
    old = os.umask(0)
    try:
        folder = Path(obtain(tmp_path, rules).path).parent
    finally:
        os.umask(old)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert len(list(folder.iterdir())) == 2


def test_whatever_was_read_makes_it_compile_again_when_it_changes(tmp_path: Path, rules: Path) -> None:
    site = tmp_path / 'site-packages'
    site.mkdir()
    scan = (str(site), str(tmp_path / 'checkout'))

    def cached() -> bool:
        obtain(tmp_path, rules, scan=scan)
        return obtain(tmp_path, rules, scan=scan).cached

    assert cached()
    # The same size and the same modification time, put there by another file: the change time tells.
    before = rules.stat()
    rules.write_text(RULES.replace('rl.f', 'rl.g'))
    os.utime(rules, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert obtain(tmp_path, rules, scan=scan).cached is False
    assert cached()
    (site / 'pkg-1.0.dist-info').mkdir()
    assert obtain(tmp_path, rules, scan=scan).cached is False
    assert cached()
    (tmp_path / 'checkout' / 'log').mkdir(parents=True)
    assert obtain(tmp_path, rules, scan=scan).cached is False
    (tmp_path / 'checkout' / 'log2').mkdir()
    assert obtain(tmp_path, rules, scan=scan).cached is True
    (tmp_path / 'checkout' / 'pkg.egg-info').mkdir()
    assert obtain(tmp_path, rules, scan=scan).cached is False
    assert obtain(tmp_path, rules, agent='2', scan=scan).cached is False


def test_a_file_edited_at_once_after_a_launch_is_seen(tmp_path: Path, rules: Path) -> None:
    for number in range(20):
        rules.write_text(RULES.replace('rl.f', f'rl.{number:02}'))
        found = obtain(tmp_path, rules)
        assert plan.load(found.path, found.sha256)['rules'][0]['name'] == ('c', f'rl.{number:02}')


def test_a_damaged_cache_is_compiled_anew(tmp_path: Path, rules: Path) -> None:
    first = obtain(tmp_path, rules)
    (index,) = Path(first.path).parent.glob('*.index')
    for damage in (b'', b'not marshal', index.read_bytes()[:-7]):
        index.write_bytes(damage)
        assert obtain(tmp_path, rules).cached is False
        assert obtain(tmp_path, rules).cached is True
    Path(first.path).write_bytes(b'')
    found = obtain(tmp_path, rules)
    assert found.cached is False
    plan.load(found.path, found.sha256)
    target = tmp_path / 'elsewhere'
    target.write_bytes(index.read_bytes())
    index.unlink()
    index.symlink_to(target)
    assert obtain(tmp_path, rules).cached is False


@pytest.mark.parametrize('what', ['a file', 'a link', 'open to all', 'no home', 'not to be made'])
def test_where_there_can_be_no_cache_the_plan_goes_elsewhere(tmp_path: Path, rules: Path, what: str) -> None:
    folder = tmp_path / 'cache' / 'lens-auto'
    (tmp_path / 'cache').mkdir()
    if what == 'a file':
        folder.touch()
    elif what == 'a link':
        folder.symlink_to(tmp_path)
    elif what == 'open to all':
        folder.mkdir()
        folder.chmod(0o777)
    elif what == 'not to be made':
        folder = Path('/proc/none/lens-auto')
    sources = finding.only([str(rules)])
    name = '' if what == 'no home' else str(folder)
    found = plan_cache.compiled(sources, '1', name, str(tmp_path / 'fallback'))
    assert os.path.dirname(found.path) == str(tmp_path / 'fallback')
    assert found.problem
    assert plan.load(found.path, found.sha256)['rules']
    assert stat.S_IMODE(os.stat(found.path).st_mode) == 0o600


def test_a_wrong_file_is_told_every_time(tmp_path: Path, rules: Path) -> None:
    rules.write_text('framework: t\n')
    for _ in range(2):
        with pytest.raises(RuleErrors):
            obtain(tmp_path, rules)


def test_what_nobody_uses_is_removed_after_a_month(tmp_path: Path, rules: Path) -> None:
    folder = Path(obtain(tmp_path, rules).path).parent
    for name in ('old.plan', 'old.index', 'other.txt'):
        (folder / name).touch()
        os.utime(folder / name, (0, 0))
    in_use = [file for file in folder.iterdir() if not file.name.startswith(('old', 'other'))]
    for file in in_use:
        os.utime(file, (0, 0))
    assert obtain(tmp_path, rules).cached
    rules.write_text(RULES + '# more\n')
    obtain(tmp_path, rules)
    assert not {'old.plan', 'old.index'} & set(os.listdir(folder))
    assert (folder / 'other.txt').exists()
    assert all(file.exists() for file in in_use)


def test_a_warm_launch_imports_no_yaml(tmp_path: Path, rules: Path) -> None:
    program = f"""
import sys
before = set(sys.modules)
sys.path.insert(0, {str(ROOT)!r})
from lens_auto.rules import finding, plan_cache
sources = finding.sources([{str(rules)!r}], {{}}, ['python', 'train.py'])
found = plan_cache.compiled(sources, '1', {str(tmp_path / 'cache')!r})
print(found.cached, *sorted(name for name in set(sys.modules) - before if not name.startswith('lens_auto')))
"""
    told = [
        subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
        for _ in range(2)
    ]
    assert told[0].startswith('False')
    assert 'yaml' in told[0].split()
    cached, *imported = told[1].split()
    assert cached == 'True'
    assert set(imported) <= {'__future__', '_sha2', '_sha256'}
