# SPDX-License-Identifier: Apache-2.0
"""The resource of a process: who it is, on which node, in which job, and never a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from lens_auto.collect import resources
from lens_auto.collect.run import identify
from lens_auto.record import process

ENVIRON = {
    'SLURM_JOB_ID': '41',
    'SLURM_RESTART_COUNT': '2',
    'NEMO_RL_OTEL_USER_ID': 'team-rl',
    'WANDB_RUN_ID': 'abc',
    'WANDB_PROJECT': 'grpo',
    'WANDB_API_KEY': 'f00df00df00df00df00df00df00df00df00df00d',
    'POD_NAME': 'trainer-0',
    'POD_NAMESPACE': 'rl',
    'CUDA_VISIBLE_DEVICES': '0,1,2,3',
    'OTEL_RESOURCE_ATTRIBUTES': 'deployment.environment=prod,team=a%20b,api_token=hf_abcdefgh12345678,host.name=mine',
}


def of(environ: dict[str, str], told: dict[str, object], pid: int = 7, host: str | None = None) -> dict[str, object]:
    run = identify(environ)
    shared = resources.of_run(environ, run)
    who = (host or process.hostname(), pid, 11)
    return resources.of_process(shared, told, resources.from_environment(environ), 'trainer', run, *who)


def test_run_job_node_and_user_are_told() -> None:
    found = of(ENVIRON, {'dl.rank': 3, 'dl.world_size': 8})
    assert {name: found[name] for name in sorted(found) if name.split('.')[0] not in ('os', 'host', 'telemetry')} == {
        'deployment.environment': 'prod',
        'dl.rank': 3,
        'dl.world_size': 8,
        'k8s.namespace.name': 'rl',
        'k8s.pod.name': 'trainer-0',
        'nemo.run.id': '41',
        'nemo.user.id': 'team-rl',
        'process.pid': 7,
        'service.instance.id': found['service.instance.id'],
        'service.name': 'trainer',
        'slurm.job.id': '41',
        'slurm.restart_count': '2',
        'team': 'a b',
        'wandb.project': 'grpo',
        'wandb.run.id': 'abc',
    }
    assert found['host.gpu.count'] == 4
    assert found['host.name'] == 'mine'  # the user's word wins over what was found out
    assert found['telemetry.sdk.name'] == 'lens-auto'


def test_no_secret_gets_in() -> None:
    assert not [value for value in of(ENVIRON, {}).values() if 'f00d' in str(value) or 'hf_' in str(value)]


def test_every_process_is_an_instance_of_its_own() -> None:
    run = identify(ENVIRON)
    shared = resources.of_run(ENVIRON, run)
    processes = [('node', 1, 5), ('node', 1, 6), ('node', 2, 5), ('other', 1, 5)]
    ids = {resources.of_process(shared, {}, {}, 's', run, *who)['service.instance.id'] for who in processes}
    assert len(ids) == 4


def test_a_server_may_have_a_service_name_of_its_own() -> None:
    assert of({}, {'service.name': 'gym-server'})['service.name'] == 'gym-server'


def test_a_process_of_another_node_is_not_given_this_ones_hardware() -> None:
    found = of({'CUDA_VISIBLE_DEVICES': '0'}, {}, host='node17')
    assert found['host.name'] == 'node17' and 'host.gpu.count' not in found


@pytest.mark.parametrize(
    ('visible', 'count'), [('0,1', 2), ('', 0), ('-1', 0), ('NoDevFiles', 0), ('GPU-1a,GPU-2b', 2), ('0,-1,2', 1)]
)
def test_gpus_are_counted_as_cuda_counts_them(visible: str, count: int) -> None:
    assert resources.gpu_count({'CUDA_VISIBLE_DEVICES': visible}) == count


def test_gpus_are_counted_from_the_drivers_list(tmp_path: Path) -> None:
    for bus in ('0000:0f:00.0', '0000:2d:00.0'):
        (tmp_path / bus).mkdir()
    assert resources.gpu_count({}, str(tmp_path)) == 2
    assert resources.gpu_count({}, str(tmp_path / 'none')) is None
