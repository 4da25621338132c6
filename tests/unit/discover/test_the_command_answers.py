# SPDX-License-Identifier: Apache-2.0
"""`lens-rules discover` as a user runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lens_auto.rules.cli import main

TRAINER = """
from helpers import compute_rewards

def main(steps):
    for step in range(steps):
        rollouts = engine.generate(step)
        policy.train(compute_rewards(rollouts))

if __name__ == '__main__':
    main(3)
"""
HELPERS = """
def compute_rewards(rollouts):
    return judge(rollouts)
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a script and a module beside it; the working directory is another one."""
    folder = tmp_path / 'my-trainer'
    folder.mkdir()
    (folder / 'train.py').write_text(TRAINER)
    (folder / 'helpers.py').write_text(HELPERS)
    monkeypatch.chdir(tmp_path)
    return folder


def test_the_proposed_file_passes_check(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['discover', 'my-trainer', '-o', 'my-trainer/lens.yaml']) == 0
    said = capsys.readouterr()
    assert said.out == ''
    assert said.err.startswith('lens-rules: my-trainer/lens.yaml: 4 rules from 2 files: ')
    assert main(['check', 'my-trainer/lens.yaml']) == 0
    checked = capsys.readouterr().out
    assert '4 rules: 4 matched' in checked
    assert 'helpers:compute_rewards' in checked and 'train.py:main' in checked


def test_without_a_file_it_goes_to_the_terminal(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['discover', str(program / 'train.py'), str(program / 'helpers.py')]) == 0
    written = capsys.readouterr().out
    assert written.startswith('# Proposed by `lens-rules discover ')
    assert 'framework: my_trainer\n' in written


def test_nothing_is_run_or_imported(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (program / 'helpers.py').write_text(HELPERS + '\nraise SystemExit("imported")\n')
    assert main(['discover', 'my-trainer']) == 0


def test_a_proposal_may_be_made_anew_and_nothing_else_is_overwritten(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['discover', 'my-trainer', '-o', 'lens.yaml']) == 0
    assert main(['discover', 'my-trainer', '-o', 'lens.yaml']) == 0
    own = program / 'own.yaml'
    own.write_text('framework: mine\nrules: []\n')
    assert main(['discover', 'my-trainer', '-o', str(own)]) == 2
    assert own.read_text() == 'framework: mine\nrules: []\n'
    assert 'is no proposal of ours' in capsys.readouterr().err


@pytest.mark.parametrize('path', ['nowhere', 'notes.txt'])
def test_a_path_that_is_no_program_is_an_error(program: Path, capsys: pytest.CaptureFixture[str], path: str) -> None:
    Path('notes.txt').write_text('for step in range(3): policy.train(step)')
    assert main(['discover', path]) == 2
    assert f'{path} is neither a folder nor a Python file' in capsys.readouterr().err


def test_a_program_that_trains_nothing_has_nothing_to_propose(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['discover', str(program / 'helpers.py')]) == 1
    said = capsys.readouterr()
    assert 'nothing in 1 file looks like the training of a policy' in said.err
    assert 'rules: []' in said.out


def test_files_that_cannot_be_read_are_told_and_left_out(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (program / 'broken.py').write_text('def (:\n')
    (program / 'binary.py').write_bytes(b'\x00\xff')
    assert main(['discover', 'my-trainer']) == 0
    assert '# not read: binary.py (' in capsys.readouterr().out


def test_deeply_nested_code_is_no_obstacle(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (program / 'sums.py').write_text('total = ' + ' + '.join(['f(1)'] * 900) + '\n')
    choices = ''.join(f'    elif x == {index}:\n        y = {index}\n' for index in range(900))
    (program / 'choices.py').write_text(f'def choose(x):\n    if x is None:\n        y = 0\n{choices}    return y\n')
    assert main(['discover', 'my-trainer']) == 0
    assert 'target: helpers:compute_rewards' in capsys.readouterr().out


def test_tests_and_virtual_environments_are_not_the_program(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ('tests', 'env', '.hidden'):
        (program / folder).mkdir()
        (program / folder / 'train.py').write_text(TRAINER)
    (program / 'env' / 'pyvenv.cfg').write_text('')
    assert main(['discover', 'my-trainer']) == 0
    assert 'from 2 files' in capsys.readouterr().err


def test_packages_are_named_from_wherever_they_are_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / 'src' / 'pack' / 'train'
    inner.mkdir(parents=True)
    (tmp_path / 'src' / 'pack' / '__init__.py').write_text('')
    (inner / 'fit.py').write_text(TRAINER.replace('from helpers', 'from pack.helpers'))
    (tmp_path / 'src' / 'pack' / 'helpers.py').write_text(HELPERS)
    monkeypatch.chdir(tmp_path)
    for path in ('src', 'src/pack', 'src/pack/train'):
        # Python finds a folder of a package without `__init__.py` too; on its own it could be anything.
        if path.endswith('train'):
            (inner / '__init__.py').write_text('')
        assert main(['discover', path]) == 0
        assert 'target: pack.train.fit:main' in capsys.readouterr().out


def test_a_package_without_an_init_file_is_known_by_what_imports_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # prime-rl is laid out so: folders of the package have an `__init__.py`, the package itself has none.
    inner = tmp_path / 'src' / 'pack' / 'train'
    inner.mkdir(parents=True)
    (inner / '__init__.py').write_text('')
    (inner / 'fit.py').write_text(TRAINER.replace('from helpers', 'from pack.train.helpers'))
    (inner / 'helpers.py').write_text(HELPERS)
    monkeypatch.chdir(tmp_path)
    for path in ('src', 'src/pack'):
        assert main(['discover', path]) == 0
        said = capsys.readouterr().out
        assert 'target: pack.train.fit:main' in said and 'framework: pack\n' in said
