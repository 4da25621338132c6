# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path

import pytest
from tiny_grpo.config import GrpoConfig, parse_args


def test_flags_win_over_the_file_and_the_file_over_the_defaults(tmp_path: Path):
    file = tmp_path / 'run.json'
    file.write_text(json.dumps({'steps': 7, 'seed': 5, 'telemetry': {'span_groups': 'all'}}))
    config = parse_args(['--config', str(file), '--seed', '9'])

    assert (config.steps, config.seed, config.group_size) == (7, 9, GrpoConfig().group_size)
    assert config.telemetry == {'span_groups': 'all'}


@pytest.mark.parametrize(
    ('content', 'complaint'),
    [({'stepz': 7}, 'unknown fields: stepz'), ({'group_size': 1}, 'at least 2'), ({'steps': 0}, 'at least 1')],
)
def test_a_config_that_cannot_train_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: dict[str, int], complaint: str
):
    file = tmp_path / 'run.json'
    file.write_text(json.dumps(content))
    with pytest.raises(SystemExit):
        parse_args(['--config', str(file)])
    assert complaint in capsys.readouterr().err
