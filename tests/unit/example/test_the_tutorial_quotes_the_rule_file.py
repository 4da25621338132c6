# SPDX-License-Identifier: Apache-2.0
import re
from pathlib import Path

import pytest

from lens_auto.rules.cli import main
from lens_auto.rules.model import TimerRule
from lens_auto.rules.validate import read_file

REPOSITORY = Path(__file__).resolve().parents[3]
TUTORIAL = (REPOSITORY / 'docs' / 'writing_rules.md').read_text()
BLOCKS = re.findall(r'^```(yaml|python)\n(.*?)^```', TUTORIAL, re.MULTILINE | re.DOTALL)
RULES = REPOSITORY / 'examples' / 'lens.yaml'
LOOP = REPOSITORY / 'examples' / 'tiny_grpo' / 'trainer.py'


def lines(text: str) -> list[str]:
    """The lines that say something: no comments, no layout."""
    bare = (re.sub(r'(^|\s)#.*', '', line).strip() for line in text.splitlines())
    return [line for line in bare if line]


def is_excerpt(part: list[str], whole: list[str]) -> bool:
    """Whether `part` is `whole` with lines left out."""
    rest = iter(whole)
    return all(line in rest for line in part)


@pytest.mark.parametrize('text', [text for kind, text in BLOCKS if kind == 'yaml' and 'my_trainer' in text])
def test_every_rule_file_of_the_tutorial_is_valid(text: str, tmp_path: Path):
    file = tmp_path / 'lens.yaml'
    file.write_text(text)
    assert read_file(str(file)).framework == 'my_trainer'


@pytest.mark.parametrize('text', [text for kind, text in BLOCKS if kind == 'yaml' and 'my_trainer' not in text])
def test_every_quoted_rule_stands_in_the_examples_file(text: str):
    assert is_excerpt(lines(text), lines(RULES.read_text()))


def test_the_quoted_loop_is_the_examples():
    quoted = next(text for kind, text in BLOCKS if kind == 'python')
    assert is_excerpt(lines(quoted), lines(LOOP.read_text()))


def test_every_timer_label_of_the_program_has_a_rule_and_no_rule_is_left_over():
    sources = (path for path in LOOP.parent.glob('*.py') if path.name != 'timer.py')  # its docstring times a phase
    used = {
        label for source in sources for label in re.findall(r"timer\.(?:time|start)\('(\w+)'\)", source.read_text())
    }
    (timer,) = (rule.body for rule in read_file(str(RULES)).rules if isinstance(rule.body, TimerRule))
    assert set(timer.labels) == used


def test_every_target_of_the_examples_file_exists():
    assert main(['check', str(RULES)]) == 0
