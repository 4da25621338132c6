# SPDX-License-Identifier: Apache-2.0
"""Which run this is: its id, its key, its trace, and whether other launchers belong to the same one.

A run id may repeat (a requeued SLURM job keeps its number), so everything that must not be mixed up hangs on the run
key: run id, attempt and a nonce. Launchers of one run (a rank each) find each other by a join key. A *strong* one
(given by the user, by SLURM's step or by torchrun's run id) names one run wherever it is seen, so the nonce is derived
from it. A *weak* one (MASTER_ADDR and port, or torchrun's default id) is used again by the next run on the machine, so
it only counts while a launcher of that run is alive.
"""

from __future__ import annotations

import os
from _blake2 import blake2b
from time import monotonic_ns, time_ns

from lens_auto.record import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_RUN_IDS = ('LENS_RUN_ID', 'NEMO_RL_OTEL_RUN_ID', 'NEMO_GYM_OTEL_RUN_ID', 'NEMO_LENS_RUN_ID', 'SLURM_JOB_ID')


class RunError(Exception):
    """The run cannot have the folder or spool that was asked for; the text is for the user."""


class Run:
    """The identity of a run.

    Attributes:
        run_id: What people and backends call it; may repeat.
        source: Where the id came from: a variable's name, or 'random'.
        attempt: Restart count, 0 for the first.
        nonce: Hex digits that tell runs of one id apart.
        join: What launchers of this run have in common, '' for a run of one launcher.
        strong: Whether `join` can never be another run's.
        started_wall_ns: When it began, by the wall clock.
        started_mono_ns: The same moment by CLOCK_MONOTONIC of this node.
    """

    __slots__ = ('attempt', 'join', 'nonce', 'run_id', 'source', 'started_mono_ns', 'started_wall_ns', 'strong')

    def __init__(self, run_id: str, source: str, attempt: int, nonce: str, join: str, strong: bool) -> None:
        self.run_id = run_id
        self.source = source
        self.attempt = attempt
        self.nonce = nonce
        self.join = join
        self.strong = strong
        self.started_wall_ns = time_ns()
        self.started_mono_ns = monotonic_ns()

    @property
    def run_key(self) -> str:
        """The name under which nothing but this run is kept."""
        return f'{self.run_id}:{self.attempt}:{self.nonce}'

    @property
    def trace_id(self) -> bytes:
        """The run's trace id, 16 bytes."""
        return bytes.fromhex(digest(self.run_key, 16))

    @property
    def root_span_id(self) -> bytes:
        """Id of the run's `lens.run` span, 8 bytes."""
        return bytes.fromhex(digest(self.run_key + '/lens.run', 8))

    @property
    def root(self) -> str:
        """`<trace id>-<span id>` in hex: what LENS_RUN_ROOT carries."""
        return f'{self.trace_id.hex()}-{self.root_span_id.hex()}'


def digest(text: str, size: int) -> str:
    """`size` bytes of blake2b, in hex.

    Args:
        text: What to hash.
        size: Bytes.
    """
    # hashlib would import OpenSSL: 5 ms before the user's program starts.
    return blake2b(text.encode('utf-8', 'surrogateescape'), digest_size=size).hexdigest()


def identify(environ: Mapping[str, str]) -> Run:
    """The run this launcher is asked to start, by its environment.

    Args:
        environ: The launcher's environment.
    """
    join, strong = _join_key(environ)
    attempt = environ.get('SLURM_RESTART_COUNT') or environ.get('TORCHELASTIC_RESTART_COUNT') or '0'
    nonce = digest(join, 6) if strong else os.urandom(6).hex()
    for name in _RUN_IDS:
        if environ.get(name, '').strip():
            # It is a word of a file name, of a line of a file and of what people read.
            run_id = ''.join(c if c.isprintable() else '_' for c in environ[name].strip()[:128])
            source = name
            break
    else:
        # Launchers on several nodes, with no folder in common, must still agree.
        run_id, source = (digest('run id/' + join, 6), 'join key') if strong else (os.urandom(6).hex(), 'random')
    return Run(run_id, source, int(attempt) if attempt.isdigit() else 0, nonce, join, strong)


def _join_key(environ: Mapping[str, str]) -> tuple[str, bool]:
    get = environ.get
    if get('LENS_RUN_KEY'):
        return 'key ' + environ['LENS_RUN_KEY'], True
    job, step = get('SLURM_JOB_ID'), get('SLURM_STEP_ID') or get('SLURM_STEPID')
    # A batch script is no step: two commands in it are two runs.
    if job and step and get('SLURM_NTASKS', get('SLURM_NPROCS', '1')) != '1':
        return f'slurm {get("SLURM_CLUSTER_NAME", "")} {job}.{step}.{get("SLURM_RESTART_COUNT", "0")}', True
    several = get('WORLD_SIZE', '1') not in ('', '1')
    master = f'{get("MASTER_ADDR", "")}:{get("MASTER_PORT", "")}'
    elastic = get('TORCHELASTIC_RUN_ID')
    if elastic:
        restart = get('TORCHELASTIC_RESTART_COUNT', '0')
        # torchrun's default id is the word "none": the same for every run there ever was.
        return f'torchelastic {elastic} {restart} {master if elastic == "none" else ""}', elastic != 'none'
    if several and master != ':':
        return f'master {master} {process.hostname()}', False
    return '', False
