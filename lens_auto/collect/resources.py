# SPDX-License-Identifier: Apache-2.0
"""What is known of a process from outside: its run, node, job and service; the process itself told the rest."""

from __future__ import annotations

import os

from lens_auto import __version__
from lens_auto.collect.run import digest
from lens_auto.record import process
from lens_auto.settings import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from lens_auto.collect.run import Run

# Environment name -> attribute. Names only: nothing that could hold a secret is ever listed here.
_NAMED = {
    'SLURM_JOB_ID': 'slurm.job.id',
    'SLURM_JOB_NAME': 'slurm.job.name',
    'SLURM_JOB_PARTITION': 'slurm.job.partition',
    'SLURM_JOB_NUM_NODES': 'slurm.job.num_nodes',
    'SLURM_CLUSTER_NAME': 'slurm.cluster.name',
    'SLURM_STEP_ID': 'slurm.step.id',
    'SLURM_NTASKS': 'slurm.ntasks',
    'SLURM_NODEID': 'slurm.node.id',
    'SLURM_PROCID': 'slurm.proc.id',
    'SLURM_RESTART_COUNT': 'slurm.restart_count',
    'WANDB_RUN_ID': 'wandb.run.id',
    'WANDB_NAME': 'wandb.run.name',
    'WANDB_RUN_NAME': 'wandb.run.name',
    'WANDB_PROJECT': 'wandb.project',
    'WANDB_ENTITY': 'wandb.entity',
    # The names under which charts and operators commonly hand the downward API to a container.
    'K8S_POD_NAME': 'k8s.pod.name',
    'POD_NAME': 'k8s.pod.name',
    'MY_POD_NAME': 'k8s.pod.name',
    'K8S_POD_UID': 'k8s.pod.uid',
    'POD_UID': 'k8s.pod.uid',
    'K8S_NAMESPACE': 'k8s.namespace.name',
    'K8S_NAMESPACE_NAME': 'k8s.namespace.name',
    'POD_NAMESPACE': 'k8s.namespace.name',
    'MY_POD_NAMESPACE': 'k8s.namespace.name',
    'K8S_NODE_NAME': 'k8s.node.name',
    'NODE_NAME': 'k8s.node.name',
    'MY_NODE_NAME': 'k8s.node.name',
    'K8S_CONTAINER_NAME': 'k8s.container.name',
}
_USERS = ('LENS_USER_ID', 'NEMO_RL_OTEL_USER_ID', 'NEMO_GYM_OTEL_USER_ID', 'NEMO_LENS_USER_ID')
_NAMESPACE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace'
_LONGEST = 256


def of_run(environ: Mapping[str, str], run: Run) -> dict[str, Any]:
    """Attributes all processes of this node share.

    Args:
        environ: The launcher's environment, read before anything removes SLURM's variables.
        run: The run.
    """
    found: dict[str, Any] = {
        'telemetry.sdk.name': 'lens-auto',
        'telemetry.sdk.language': 'python',
        'telemetry.sdk.version': __version__,
        'host.name': os.uname().nodename,
        'host.arch': os.uname().machine,
        'os.type': os.uname().sysname.lower(),
        'nemo.run.id': run.run_id,
    }
    machine = _first_line('/etc/machine-id')
    if machine:
        found['host.id'] = machine
    user = next((environ[name] for name in _USERS if environ.get(name)), '')
    if user:
        found['nemo.user.id'] = user[:_LONGEST]
    for name, attribute in _NAMED.items():
        if environ.get(name):
            found.setdefault(attribute, environ[name][:_LONGEST])
    if environ.get('KUBERNETES_SERVICE_HOST'):
        found.setdefault('k8s.pod.name', environ.get('HOSTNAME') or os.uname().nodename)
        namespace = _first_line(_NAMESPACE)
        if namespace:
            found.setdefault('k8s.namespace.name', namespace)
    gpus = gpu_count(environ)
    if gpus is not None:
        found['host.gpu.count'] = gpus
    return found


def gpu_count(environ: Mapping[str, str], listing: str = '/proc/driver/nvidia/gpus') -> int | None:
    """GPUs this launcher may use: CUDA_VISIBLE_DEVICES, else those the driver lists, else None. No library is asked.

    Args:
        environ: The launcher's environment.
        listing: The driver's folder, one entry a GPU.
    """
    visible = environ.get('CUDA_VISIBLE_DEVICES')
    if visible is not None:
        listed = [one.strip() for one in visible.split(',')]
        # CUDA stops at the first device it does not know; -1 and NoDevFiles are the common ways to say "none".
        count = 0
        for one in listed:
            if not one or one.startswith('-') or one == 'NoDevFiles':
                break
            count += 1
        return count
    try:
        return len(os.listdir(listing))
    except OSError:
        return None


def from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """OTEL_RESOURCE_ATTRIBUTES, read as the SDK reads it, less what looks like a secret.

    Args:
        environ: The launcher's environment.
    """
    found: dict[str, str] = {}
    for item in environ.get('OTEL_RESOURCE_ATTRIBUTES', '').split(','):
        key, equals, value = item.partition('=')
        key = key.strip()
        value = _unquoted(value.strip())
        if equals and key and not redact.is_secret(key, value):
            found[key] = redact.text(value)
    return found


def _unquoted(value: str) -> str:
    if '%' not in value:
        return value
    from urllib.parse import unquote

    return unquote(value)


def of_process(
    shared: Mapping[str, Any],
    told: Mapping[str, Any],
    environment: Mapping[str, str],
    service: str,
    run: Run,
    host: str,
    pid: int,
    started: int,
) -> dict[str, Any]:
    """The whole resource of one process.

    What the user wrote in OTEL_RESOURCE_ATTRIBUTES wins over what was found out; only what makes processes distinct,
    and the name of the service, cannot be changed by it.

    Args:
        shared: `of_run`.
        told: What the process said of itself in its journal.
        environment: `from_environment`.
        service: The resolved service name.
        run: The run.
        host: The process's node.
        pid: Its process id.
        started: Its start time in ticks.
    """
    found = {**shared, **told, **environment}
    found['service.name'] = told.get('service.name') or service
    found['service.instance.id'] = digest(f'{run.run_key}/{host}/{pid}/{started}', 16)
    found['process.pid'] = pid
    for name in ('telemetry.sdk.name', 'telemetry.sdk.language', 'telemetry.sdk.version', 'nemo.run.id'):
        found[name] = shared[name]
    if host != process.hostname():
        # Replayed elsewhere: what was found out here is not about that node.
        found['host.name'] = host
        for name in ('host.id', 'host.arch', 'host.gpu.count'):
            found.pop(name, None)
    return found


def _first_line(path: str) -> str:
    try:
        with open(path, encoding='utf-8', errors='replace') as text:
            return text.readline().strip()[:_LONGEST]
    except OSError:
        return ''
