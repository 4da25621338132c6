# SPDX-License-Identifier: Apache-2.0
"""`lens-rules check` finds what scripts define and what Ray makes remote, and the built-in file fits Ray."""

from pathlib import Path
from textwrap import dedent

import pytest

from lens_auto.rules import cli

REPOSITORY = Path(__file__).resolve().parents[3]
SCRIPT = """\
import ray

@ray.remote
class Worker:
    def step(self): pass

@ray.remote(num_cpus=1)
class Options:
    def step(self): pass

class Plain:
    def step(self): pass

Late = ray.remote(Plain)
LateToo = ray.remote(num_gpus=0)(Plain)

@ray.remote
def task(): pass
"""


def checked(folder: Path, capsys: pytest.CaptureFixture[str], target: str) -> tuple[int, str]:
    (folder / 'r.yaml').write_text(
        dedent(f"""\
        framework: t
        rules:
        - {{kind: function, target: "{target}", group: step, name: a}}
        """)
    )
    code = cli.main(['check', str(folder / 'r.yaml')])
    return code, capsys.readouterr().out


@pytest.mark.parametrize('name', ['Worker.step', 'Options.step', 'Late.step', 'LateToo.step', 'Plain.step', 'task'])
@pytest.mark.parametrize('script', ['train.py', 'examples/train.py'])
def test_what_a_script_makes_remote_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], script: str, name: str
) -> None:
    folder = tmp_path / 'examples'
    folder.mkdir()
    (folder / 'train.py').write_text(SCRIPT)
    monkeypatch.chdir(tmp_path if '/' in script else folder)
    code, shown = checked(folder, capsys, f'{script}:{name}')
    assert (code, 'matched' in shown) == (0, True), shown


@pytest.mark.parametrize(
    ('target', 'said'),
    [
        ('train.py:Worker.stop', 'missing'),
        ('other.py:Worker.step', 'not found: no such script'),
        ('elsewhere/train.py:Worker.step', 'not found: no such script'),
    ],
)
def test_a_script_or_name_that_is_not_there_is_drift(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target: str, said: str
) -> None:
    (tmp_path / 'train.py').write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    code, shown = checked(tmp_path, capsys, target)
    assert (code, said in shown) == (1, True), shown


def test_the_built_in_file_fits_the_installed_ray(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip('ray')
    assert cli.main(['check', str(REPOSITORY / 'rules' / 'ray.yaml')]) == 0
    assert '3 rules: 3 matched' in capsys.readouterr().out
