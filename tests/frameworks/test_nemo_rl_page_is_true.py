# SPDX-License-Identifier: Apache-2.0
"""docs/frameworks/nemo-rl.md against the rule file: its names are those of the rules, and its commands are taken."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.helpers.run import REPOSITORY, Place

PAGE = (REPOSITORY / 'docs' / 'frameworks' / 'nemo-rl.md').read_text()
FILE = yaml.safe_load((REPOSITORY / 'rules' / 'nemo_rl.yaml').read_text())
QUOTED = set(re.findall(r'`([^`\n]+)`', PAGE))
FENCED = re.findall(r'^```(\w*)\n(.*?)^```', PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [line for kind, text in FENCED if not kind for line in text.splitlines()]

# Where the page says one thing for many, or a name is made of a variable's values.
MANY = {
    r'rl\.\w+\.worker\.\w+': 'rl.vllm.worker.<method>',
    r'rl\.(policy|value)\.(?!load_model)\w+': 'rl.policy.<method>',
    r'rl\.(?!vllm)\w+\.generate_async': 'rl.vllm.generate_async',
    r'rl\.(grpo|ppo|sft|dpo|rm|distillation|xtoken_distillation)\.(job|evaluate)': r'rl.<a>.\2',
    r'rl\.\{(algorithm|collector)\}\.(.*)': r'rl.<a>.\2',
    r'rl\.data_plane\.\{arg\.op\}': 'rl.data_plane.<op>',
    r'rl\.rm\.\{rm_\w+\}': 'rl.rm.validation_forward',
}
GROUPS_OF_OTHERS = {'phase'}  # "and other timer labels"


def names(entry: Any) -> Iterator[str]:
    """The names that an entry of the rule file gives, in every vocabulary."""
    given = entry if isinstance(entry, str) else entry['name']
    for name in given.values() if isinstance(given, dict) else [given]:
        for pattern, said in MANY.items():
            name = re.sub(rf'^{pattern}$', said, name)
        yield name


def recorded() -> Iterator[str]:
    """Every name of a span or metric that the rules can give, as the page writes it."""
    for rule in FILE['rules']:
        metrics = rule.get('metrics', ())
        for entry in metrics.values() if isinstance(metrics, dict) else metrics:
            yield from names(entry)
        for entry in rule['labels'].values() if 'labels' in rule else [rule] if 'name' in rule else []:
            if entry['group'] not in GROUPS_OF_OTHERS:
                yield from names(entry)


def test_every_span_and_metric_of_the_rules_is_on_the_page() -> None:
    assert sorted(set(recorded()) - QUOTED) == []


def attributes(entry: Any) -> Iterator[str]:
    """Every attribute that a part of the rule file gives."""
    for key, value in entry.items() if isinstance(entry, dict) else enumerate(entry):
        if key == 'attributes':
            yield from value
        elif isinstance(value, (dict, list)):
            yield from attributes(value)


def test_every_attribute_of_the_rules_is_on_the_page() -> None:
    ends = tuple(name for name in QUOTED if name.startswith('.'))  # `rl.data_plane.op`, `.partition`
    assert sorted(name for name in set(attributes(FILE['rules'])) - QUOTED if not name.endswith(ends)) == []


def test_what_the_page_says_is_absent_has_no_rule() -> None:
    rows = [line.split('|') for line in PAGE.splitlines() if line.startswith('| ') and '| Absent' in line]
    absent = {name for row in rows for name in re.findall(r'`([^`]+)`', row[1])}
    assert 'rl.sft_v2.*' in absent
    text = (REPOSITORY / 'rules' / 'nemo_rl.yaml').read_text()
    assert [name for name in absent if name.rstrip('*') in text and name.startswith(('rl.', 'nv.'))] == []


def test_there_are_commands() -> None:
    assert len(COMMANDS) == 4


@pytest.mark.parametrize('command', COMMANDS)
def test_the_commands_are_taken(nemo_rl: Place, command: str) -> None:
    program, *arguments = shlex.split(command)
    assert program == 'lens-instrument'
    (nemo_rl.cwd / 'examples' / 'configs').mkdir(parents=True)
    nemo_rl.write({'examples/configs/grpo_math_1B.yaml': 'grpo: {}\n'})
    done = nemo_rl.lens('--info', *arguments, env={'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://127.0.0.1:9'})
    assert done.code == 0, done.stderr
    assert 'nemo-rl' in done.stdout
