# SPDX-License-Identifier: Apache-2.0
"""What torch.compile and TorchScript read is left alone, and said so; a rule with `force` edits it all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.program import Outcome, Program, place

pytest.importorskip('torch')
pytestmark = pytest.mark.slow

MODULE = """
    import torch

    @torch.compile(backend='eager')
    def decorated(x):
        for turn in range(2):
            x = x * 2
        return x

    def given(x):
        for turn in range(3):
            x = x + 1
        return x

    def scripted(x: torch.Tensor) -> torch.Tensor:
        for turn in range(2):
            x = x - 1
        return x

    compiled = torch.compile(given, backend='eager')
    script = torch.jit.script(scripted)
"""
MAIN = """
    import torch
    import m
    x = torch.ones(2)
    print(m.decorated(x).tolist(), m.compiled(x).tolist(), m.script(x).tolist(), m.scripted(x).tolist())
"""
NAMES = ('decorated', 'given', 'scripted')


def run(folder: Path, force: bool) -> tuple[Outcome, Outcome]:
    program = Program(folder, {'m.py': MODULE, 'main.py': MAIN})
    rules = [place('loop', name, f'm:{name}', 'for turn in range($n):') for name in NAMES]
    for rule in rules:
        rule['force'] = force
    return program.plain(), program.traced(rules)


def test_without_force_it_is_left_alone_and_the_reason_told(tmp_path: Path) -> None:
    plain, traced = run(tmp_path, force=False)

    assert traced.visible() == plain.visible()
    assert traced.journal.spans == []
    reasons = [report['reason'] for report in traced.journal.reports('missing')]
    for name, reader in zip(
        NAMES, ('decorated with torch.compile', 'given to torch.compile', 'torch.jit.script'), strict=True
    ):
        [reason] = [each for each in reasons if each.startswith('line ') and f'{name} is' in each]
        assert reader in reason and '`force: true` edits it' in reason


def test_with_force_it_is_recorded_and_computes_the_same(tmp_path: Path) -> None:
    plain, traced = run(tmp_path, force=True)

    assert traced.visible() == plain.visible()
    names = traced.journal.names()
    assert {name: names.count(name) for name in NAMES} == {'decorated': 2, 'given': 3, 'scripted': 2}
    assert traced.journal.reports('missing') == traced.journal.reports('fault') == []
