# SPDX-License-Identifier: Apache-2.0
"""docs/rules.md against the code: its tables, its files, its error."""

import re
from pathlib import Path

import pytest

from lens_auto.rules import registry
from lens_auto.rules.errors import RuleErrors
from lens_auto.rules.expression import FUNCTIONS, ROOTS
from lens_auto.rules.model import (
    FILE_KEYS,
    KINDS,
    LABEL_KEYS,
    LATER_KINDS,
    MEASURE_KEYS,
    METRIC_KEYS,
    NATIVE_KEYS,
    VAR_KEYS,
    Keys,
)
from lens_auto.rules.validate import read_file

PAGE = (Path(__file__).resolve().parents[3] / 'docs' / 'rules.md').read_text()
BLOCKS = re.findall(r'^```(\w*)\n(.*?)^```', PAGE, re.MULTILINE | re.DOTALL)
FILES = [text for kind, text in BLOCKS if kind == 'yaml']


def table(keys: Keys) -> str:
    rows = [
        f'| `{name}` | {"required" if key.required else key.default} | {key.doc} |\n'
        for name, key in keys.items()
        if name != 'kind'
    ]
    return '| key | default | meaning |\n|---|---|---|\n' + ''.join(rows)


@pytest.mark.parametrize(
    'keys', [FILE_KEYS, NATIVE_KEYS, LABEL_KEYS, METRIC_KEYS, MEASURE_KEYS, VAR_KEYS, *KINDS.values()]
)
def test_the_tables_list_the_keys_of_the_model(keys: Keys) -> None:
    assert table(keys) + '\n' in PAGE


def test_the_names_on_the_page_are_those_of_the_code() -> None:
    for name, bucket in registry.GROUPS.items():
        preset = ['yes' if name in registry.PRESETS[of] else '' for of in ('default', 'per_step')]
        assert f'| `{name}` | {bucket or "-"} | {preset[0]} | {preset[1]} |\n' in PAGE
    assert ', '.join(f'`{kind}`' for kind in LATER_KINDS) in PAGE
    assert ', '.join(f'`{name}()`' for name in FUNCTIONS) in PAGE
    for root in ROOTS:
        assert re.search(rf'^\| `{root}', PAGE, re.MULTILINE)
    for kind in KINDS:
        assert f'\n### {kind}\n' in PAGE


@pytest.mark.parametrize('text', FILES[:-1])
def test_every_file_on_the_page_is_valid(text: str, tmp_path: Path) -> None:
    file = tmp_path / 'lens.yaml'
    file.write_text(text)
    assert read_file(str(file)).rules


def test_the_error_on_the_page_is_what_its_file_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'my_trainer.yaml').write_text(FILES[-1])
    with pytest.raises(RuleErrors) as raised:
        read_file('my_trainer.yaml')
    (shown,) = (text for kind, text in BLOCKS if not kind)
    assert str(raised.value) + '\n' == shown
