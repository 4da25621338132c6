# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.helpers.run import REPOSITORY, Place

LIKE = Path(__file__).parent / 'vllm_like'
PROGRAM = f"""
import sys
sys.path.append({str(REPOSITORY)!r})
from vllm.entrypoints.llm import LLM
from lens_auto.vllm.plugin import load
load()
load()
LLM('tiny').generate([3, 5])
"""


def test_a_process_without_our_path_takes_part_once_vllm_has_loaded_its_plugins(tmp_path: Path) -> None:
    place = Place(tmp_path)
    shutil.copytree(LIKE, place.cwd, dirs_exist_ok=True, ignore=shutil.ignore_patterns('__pycache__'))
    (place.cwd / 'program.py').write_text(PROGRAM)
    run = place.record('env', '-u', 'PYTHONPATH', sys.executable, 'program.py')
    assert [span.name for span in run.spans if span.name != 'lens.run'] == ['rl.vllm.load_model', 'rl.vllm.generate']


def test_without_a_run_the_plugin_does_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path)
    shutil.copytree(LIKE, place.cwd, dirs_exist_ok=True, ignore=shutil.ignore_patterns('__pycache__'))
    (place.cwd / 'program.py').write_text(PROGRAM + 'print([type(each).__module__ for each in sys.meta_path])\n')
    done = place.plain(sys.executable, 'program.py')
    assert done.code == 0, done.stderr
    assert 'stage_1' not in done.stdout
    assert not place.runs


def test_vllm_finds_it_by_its_entry_point() -> None:
    text = (REPOSITORY / 'pyproject.toml').read_text()
    assert '[project.entry-points."vllm.general_plugins"]\nlens_auto = "lens_auto.vllm.plugin:load"\n' in text
