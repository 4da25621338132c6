# SPDX-License-Identifier: Apache-2.0
"""A rule about an engine is done at several functions of it: `lens-rules check` names the one that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from lens_auto.rules import cli
from lens_auto.rules.model import VLLM_PLACES


def _package(folder: Path, left_out: str) -> None:
    """A `vllm` that has all that `finish` rules need, but one."""
    classes: dict[str, dict[str, list[str]]] = {}
    for module, qualname in VLLM_PLACES['finish']:
        owner, name = qualname.split('.')
        methods = classes.setdefault(module, {}).setdefault(owner, [])
        if qualname != left_out:
            methods.append(name)
    for module, owners in classes.items():
        path = folder.joinpath(*module.split('.')).with_suffix('.py')
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f'class {owner}:\n    x = 0\n' for owner in owners]
        for place, methods in enumerate(owners.values()):
            lines[place] += ''.join(f'    def {name}(self): pass\n' for name in methods)
        path.write_text('\n'.join(lines))
    for path in folder.rglob('*'):
        if path.is_dir():
            (path / '__init__.py').touch()


@pytest.mark.parametrize('left_out', ['', *(qualname for _, qualname in VLLM_PLACES['finish'])])
def test_the_place_that_is_gone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], left_out: str
) -> None:
    _package(tmp_path / 'path', left_out)
    monkeypatch.syspath_prepend(str(tmp_path / 'path'))
    (tmp_path / 'r.yaml').write_text('framework: t\nrules:\n- {kind: vllm, on: finish}\n')
    code = cli.main(['check', str(tmp_path / 'r.yaml')])
    shown = capsys.readouterr().out
    if left_out:
        row = next(line for line in shown.splitlines() if 'vllm.v1' in line)
        assert code == 1 and f':{left_out} ' in row and 'missing' in row
    else:
        assert code == 0 and 'and at 4 more places' in shown


def test_a_caller_that_is_not_installed_does_not_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / 'work.py').write_text('def go(): pass\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    rule = '{kind: function, target: "work:go", %s: "nobody_has_this:call", group: step, name: a}'
    for key, state in (('outside', 'matched'), ('within', 'not installed')):
        (tmp_path / 'r.yaml').write_text(f'framework: t\nrules:\n- {rule % key}\n')
        cli.main(['check', str(tmp_path / 'r.yaml')])
        assert state in capsys.readouterr().out.splitlines()[-1]
