# SPDX-License-Identifier: Apache-2.0
"""Our entry joins a PYTHONPATH that replaces the inherited one, and a job's variables where nobody else set them."""

import json
from pathlib import Path
from typing import Any

import pytest

from lens_auto.ray.calls import method_name
from lens_auto.ray.reach import LARGEST, Connections, RuntimeEnvironments, stage_one
from lens_auto.ray.tasks import task_of


class JobConfig:
    def __init__(self, **variables: str):
        self.runtime_env: dict[str, Any] | None = {'env_vars': variables} if variables else None

    def set_runtime_env(self, runtime_env: dict[str, Any]) -> None:
        self.runtime_env = runtime_env


class Ref:
    def __init__(self, number: int):
        self.number = number

    def task_id(self) -> 'Ref':
        return self

    def binary(self) -> bytes:
        return bytes([self.number])


class Refs:
    _generator_ref = Ref(3)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / 'sitecustomize.py').write_text('')
    return {'PYTHONPATH': f'{tmp_path}:/user', 'LENS_SPOOL': '/spool', 'LENS_ODD': '$x', 'HOME': '/root'}


def merge(environ: dict[str, str], config: JobConfig) -> tuple[str, dict[str, str]]:
    recorder: Any = None
    reason = Connections(recorder, environ)._merge(config)
    return reason, (config.runtime_env or {}).get('env_vars', {})


def test_stage_one_is_the_first_entry_that_holds_it(environ: dict[str, str], tmp_path: Path) -> None:
    assert stage_one(environ) == str(tmp_path)
    assert stage_one({'PYTHONPATH': '/nowhere'}) == stage_one({}) == ''


@pytest.mark.parametrize(
    ('given', 'merged'), [('/own', '{ours}:/own'), ('', '{ours}'), ('/own:{ours}', '/own:{ours}'), (None, None)]
)
def test_a_path_that_replaces_ours_gets_it_in_front(
    environ: dict[str, str], tmp_path: Path, given: str | None, merged: str | None
) -> None:
    ours = str(tmp_path)
    variables = {'A': '1'} if given is None else {'PYTHONPATH': given.format(ours=ours)}
    runtime_env = {'env_vars': variables, 'pip': ['x']}
    before = json.dumps(runtime_env, sort_keys=True)
    result = json.loads(RuntimeEnvironments(environ).after((runtime_env,), before))
    assert json.dumps(runtime_env, sort_keys=True) == before
    assert result['pip'] == ['x']
    assert result['env_vars'].get('PYTHONPATH') == (merged.format(ours=ours) if merged is not None else None)


def test_a_job_gets_our_variables_and_keeps_the_clusters_path(environ: dict[str, str], tmp_path: Path) -> None:
    expected = {'LENS_SPOOL': '/spool', 'PYTHONPATH': f'{tmp_path}:${{PYTHONPATH}}'}
    assert merge(environ, JobConfig()) == ('', expected)
    assert merge(environ, JobConfig(A='1')) == ('', {'A': '1', **expected})


def test_a_job_that_has_ours_already_stays_as_it_is(environ: dict[str, str], tmp_path: Path) -> None:
    variables = {'PYTHONPATH': f'/own:{tmp_path}', 'LENS_SPOOL': '/spool'}
    assert merge(environ, JobConfig(**variables)) == ('', variables)


def test_a_job_that_sets_one_of_ours_otherwise_is_left_alone(environ: dict[str, str]) -> None:
    assert merge(environ, JobConfig(LENS_SPOOL='/mine')) == ('the job sets LENS_SPOOL itself', {'LENS_SPOOL': '/mine'})


def test_a_job_too_large_for_workers_to_start_is_left_alone(environ: dict[str, str]) -> None:
    variables = {'LARGE': 'x' * LARGEST}
    reason, left = merge(environ, JobConfig(**variables))
    assert 'KiB of environment' in reason
    assert left == variables


def test_a_driver_without_our_path_says_so(environ: dict[str, str]) -> None:
    assert merge({**environ, 'PYTHONPATH': '/user'}, JobConfig()) == (
        'PYTHONPATH of the driver does not name our stage 1',
        {},
    )


@pytest.mark.parametrize(
    ('result', 'task'),
    [(Ref(1), b'\x01'), ([Ref(2), Ref(4)], b'\x02'), (Refs(), b'\x03'), (None, None), ([], None), (object(), None)],
)
def test_the_task_is_that_of_the_first_ref(result: Any, task: bytes | None) -> None:
    assert task_of(result) == task


def test_a_handle_without_a_class_still_has_a_name() -> None:
    assert method_name(object(), 'step') == 'actor.step'
