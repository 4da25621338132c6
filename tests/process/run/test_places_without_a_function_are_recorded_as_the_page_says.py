# SPDX-License-Identifier: Apache-2.0
"""The script, the rules and the output of "where there is no function" in docs/writing_rules.md, run."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.helpers.run import REPOSITORY, SCRIPTS, Place, Run

PAGE = (REPOSITORY / 'docs' / 'writing_rules.md').read_text()
SECTION = PAGE.partition('where there is no function\n')[2].partition('\n## ')[0]
PROGRAM, RULES, OUTPUT, CHECKED = re.findall(r'^```\w*\n(.*?)^```', SECTION, re.MULTILINE | re.DOTALL)


def measured_alike(text: str) -> str:
    """A text without what differs from run to run: figures with a unit, ids, and the spaces that line them up."""
    return re.sub(r'run \w{12}|[\d.]+ (%|s|ms|us|ns)\b|[\d.]+ %', '#', re.sub(r'[ ]+', ' ', text)).strip()


def test_the_run_and_the_check_print_what_the_page_shows(tmp_path: Path) -> None:
    place = Place(tmp_path).write({'train.py': PROGRAM, 'lens.yaml': RULES})

    done = place.lens('--run-dir', 'run', sys.executable, 'train.py')
    assert done.code == 0
    command, _, shown = OUTPUT.partition('\n')
    assert command == '$ lens-instrument python train.py'
    printed = done.stdout + done.stderr.partition('lens-auto')[1] + done.stderr.partition('lens-auto')[2]
    assert measured_alike(printed.partition('\nfolder')[0]) == measured_alike(shown)

    command, _, shown = CHECKED.partition('\n')
    assert command == '$ lens-rules check lens.yaml'
    assert place.plain(str(SCRIPTS / 'lens-rules'), 'check', 'lens.yaml').stdout == shown

    tree = Run(place.cwd / 'run').tree('rl.iteration', 'rl.num_responses')
    words = len(PROGRAM.split())
    step = '  ~ rl.ppo.step rl.iteration={}\n    rl.ppo.data_processing\n    rl.ppo.compute_rewards rl.num_responses={}'
    assert tree == '\n'.join(['lens.run', *(step.format(number, words) for number in range(3))])
