# SPDX-License-Identifier: Apache-2.0
"""Where rules come from, and what an installed package may bring along."""

import os
import sys
from pathlib import Path

import pytest

from lens_auto.rules import finding
from lens_auto.rules.errors import RuleErrors
from lens_auto.rules.plan_build import build

EMPTY = 'framework: t\nrules: []\n'


def test_files_come_in_the_order_of_their_weight_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'examples').mkdir()
    for name in ('a.yaml', 'b.yaml', 'c.yaml', 'lens.yaml', 'examples/lens.yaml', 'examples/run.py'):
        (tmp_path / name).write_text(EMPTY)
    os.symlink('a.yaml', 'link.yaml')
    found = finding.sources(
        ['b.yaml', './a.yaml'],
        {'LENS_RULES': os.pathsep.join(['c.yaml', '', 'link.yaml'])},
        ['python', '-u', 'examples/run.py', 'other.py', '--x=1.py'],
    )
    assert [(os.path.relpath(path), origin) for path, origin in found.first] == [
        ('b.yaml', '--rules'),
        ('a.yaml', '--rules'),
        ('c.yaml', 'LENS_RULES'),
        ('lens.yaml', 'lens.yaml'),
        ('examples/lens.yaml', 'lens.yaml'),
    ]


def test_a_script_is_the_first_python_file_among_the_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'train.py').touch()
    (tmp_path / 'other.py').touch()
    assert finding.script(['torchrun', '--nproc=2', 'missing.py', 'train.py', 'other.py']) == 'train.py'
    assert finding.script(['python', '-m', 'train']) is None
    assert finding.script([]) is None


def installed(site: Path, name: str, points: str, **files: str) -> None:
    metadata = site / f'{name}-1.0.dist-info'
    metadata.mkdir(parents=True)
    (metadata / 'METADATA').write_text(f'Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n')
    (metadata / 'entry_points.txt').write_text(points)
    package = site / name
    package.mkdir()
    for file, text in {'__init__.py': '', **files}.items():
        (package / file).write_text(text)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / 'site-packages'
    folder.mkdir()
    monkeypatch.setattr(sys, 'path', [str(folder), *sys.path])
    return folder


def test_a_package_names_a_file_of_its_own_or_a_function(site: Path) -> None:
    installed(site, 'pkg_res', '[lens_auto.rules]\nmine = pkg_res\n', **{'mine.yaml': EMPTY})
    installed(
        site,
        'pkg_fun',
        '[console_scripts]\nx = pkg_fun:x\n[lens_auto.rules]\nmine = pkg_fun.lens:files\n',
        **{
            'r.yaml': EMPTY.replace(': t', ': u'),
            'lens.py': 'from pathlib import Path\ndef files():\n    return [Path(__file__).with_name("r.yaml")]\n',
        },
    )
    installed(site, 'pkg_not', '[console_scripts]\nx = pkg_not:x\n')
    built = build(finding.Sources((), (str(site),), ()), '1')
    assert sorted((os.path.relpath(path, site), framework, origin) for path, framework, _, origin in built.files) == [
        ('pkg_fun/r.yaml', 'u', 'entry point mine of pkg_fun'),
        ('pkg_res/mine.yaml', 't', 'entry point mine of pkg_res'),
    ]
    assert len(built.read) == 2


def test_an_entry_point_that_leads_nowhere_is_named(site: Path) -> None:
    installed(site, 'pkg_bad', '[lens_auto.rules]\nmine = pkg_bad:files\n', **{'__init__.py': '1 / 0\n'})
    with pytest.raises(RuleErrors) as raised:
        build(finding.Sources((), (str(site),), ()), '1')
    assert str(raised.value) == (
        'entry point mine of pkg_bad  `pkg_bad:files` does not give rule files: ZeroDivisionError: division by zero\n'
        '    repair or uninstall the package'
    )


def test_faults_of_all_files_come_together(tmp_path: Path) -> None:
    for name in ('a', 'b'):
        (tmp_path / name).write_text('framework: t\n')
    with pytest.raises(RuleErrors) as raised:
        build(finding.only([str(tmp_path / 'a'), str(tmp_path / 'b')]), '1')
    assert [os.path.basename(error.path) for error in raised.value.errors] == ['a', 'b']


def test_every_built_in_file_compiles() -> None:
    sources = finding.Sources((), (), tuple((path, finding.BUILT_IN) for path in finding.built_in()))
    assert len(build(sources, '1').plan['files']) == len(finding.built_in())
