# SPDX-License-Identifier: Apache-2.0
"""The framework that gives a run its service name, unless its user gives one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lens_auto.launch import plan
from lens_auto.rules import finding
from lens_auto.rules.plan_cache import compiled


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / 'here'
    folder.mkdir()
    monkeypatch.chdir(folder)
    # Nothing is installed but what a test puts beside the script.
    monkeypatch.setattr('lens_auto.launch.own_path.of_the_command', tuple)
    return folder


def frameworks(here: Path, *rules: str) -> list[str]:
    sources = finding.sources(rules, {}, ['python', 'train.py'], ())
    return plan.frameworks(compiled(sources, '0', str(here.parent / 'cache')), ['python', 'train.py'])


def test_requests_over_http_are_no_framework(here: Path) -> None:
    assert frameworks(here) == []


def test_what_is_under_a_framework_comes_after_it(here: Path) -> None:
    for package in ('ray', 'vllm', 'nemo_rl'):
        (here / package).mkdir()
    assert frameworks(here) == ['nemo-rl', 'vllm', 'ray']


def test_a_file_of_the_user_comes_first_whatever_it_is_for(here: Path) -> None:
    (here / 'nemo_rl').mkdir()
    (here / 'mine.yaml').write_text('framework: mine\nrules: []\n')
    assert frameworks(here, os.path.join(here, 'mine.yaml')) == ['mine', 'nemo-rl']
