# SPDX-License-Identifier: Apache-2.0

import json
from pathlib import Path
from typing import Any

import pytest

from lens_auto.rules import schema
from lens_auto.rules.model import FILE_KEYS, KINDS


def test_the_schema_file_is_what_the_model_says() -> None:
    assert Path(schema.path()).read_text() == schema.text(), 'write it with: python -m lens_auto.rules.schema'


def test_the_schema_lists_every_kind_with_every_key() -> None:
    made: dict[str, Any] = schema.schema()
    assert made['properties'].keys() == FILE_KEYS.keys()
    branches = made['properties']['rules']['items']['allOf']
    assert {b['if']['properties']['kind']['const']: b['then']['properties'].keys() for b in branches} == {
        kind: keys.keys() for kind, keys in KINDS.items()
    }


def test_a_stale_schema_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = tmp_path / 'schema.json'
    monkeypatch.setattr(schema, 'path', lambda: str(stale))
    assert schema.main(['--check']) == 1
    assert 'out of date' in capsys.readouterr().err
    assert schema.main([]) == 0
    assert schema.main(['--check']) == 0
    assert json.loads(stale.read_text()) == schema.schema()
    assert schema.main(['--chekc']) == 2
