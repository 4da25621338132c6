# SPDX-License-Identifier: Apache-2.0
"""docs/report.md: every command in it runs, and its table of verdicts is that of the rules."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from lens_auto.report.cli import main
from lens_auto.report.verdicts import RULES
from tests.unit.report.planted import synchronous
from tests.unit.report.test_the_system_by_phase_process_and_gpu import line, metric

PAGE = Path(__file__).resolve().parents[3] / 'docs' / 'report.md'
FENCED = re.compile(r'^```(\w*)\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    blocks = [text for kind, text in FENCED.findall(PAGE.read_text()) if not kind]
    lines = [line.partition('  #')[0].strip() for text in blocks for line in text.splitlines()]
    return [line for line in lines if line.startswith('lens-report')]


def test_there_are_commands_to_try() -> None:
    assert len(commands()) >= 12


@pytest.mark.parametrize('command', commands())
def test_every_command_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ('RUN', 'A', 'B'):
        folder = tmp_path / 'lens-runs' / name
        folder.mkdir(parents=True)
        (folder / '.run-key').write_text(f'id {name}\nattempt 0\nnonce 0\nstarted 1\njoin \nhost a\npid 1\n')
        plant = synchronous(steps=15)
        plant.write(folder)
        memory = metric('process.memory.usage', [({}, lambda second: 1e9)], 'level')
        (folder / 'metrics-node0-1.jsonl').write_text(line(plant.resources[0], memory) + '\n')
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)[1:]) == 0


def test_the_table_of_verdicts_is_that_of_the_rules() -> None:
    told = re.findall(r'^\| `([^`]+)` \| [^|]+ \| ([^|]+) \| ([^|]*)\|$', PAGE.read_text(), re.MULTILINE)
    assert [(name, least, hides.strip()) for name, least, hides in told] == [
        (
            rule.name,
            '1' if rule.name == 'stuck' else f'{100 * rule.threshold:.0f} %',
            ', '.join(rule.hides),
        )
        for rule in RULES
    ]
