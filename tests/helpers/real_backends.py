# SPDX-License-Identifier: Apache-2.0
"""Phoenix and MLflow, each in a venv made once: started on the loopback interface, read back, and stopped."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from tests.helpers.ray_versions import cache
from tests.helpers.run import Span

CACHE = cache()  # now: a test's environment has none of our variables
START = 180.0
STOP = 20.0


class Backend(ABC):
    """A server of its own; use it in a `with`.

    Args:
        folder: An empty folder for its database and its log.
    """

    requirement = ''

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = _free()
        self._log = folder / 'log'

    def __enter__(self) -> Backend:
        folder = venv(self.requirement)
        # None of them may tell its makers of this, and neither has business beyond this machine.
        quiet = {'DO_NOT_TRACK': 'true', 'PHOENIX_TELEMETRY_ENABLED': 'false', 'MLFLOW_DISABLE_TELEMETRY': 'true'}
        kept = {name: os.environ[name] for name in ('HOME', 'LANG', 'TMPDIR') if name in os.environ}
        env = {**kept, **quiet, 'PATH': f'{folder / "bin"}:{os.environ["PATH"]}', **self.variables()}
        with open(self._log, 'wb') as log:
            self._process = subprocess.Popen(
                [str(folder / 'bin' / 'python'), str(folder / 'bin' / self.command()[0]), *self.command()[1:]],
                cwd=self.folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + START
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__(None, None, None)
                raise AssertionError(f'{self.requirement} does not start:\n{self._log.read_text()[-3000:]}')
            time.sleep(0.2)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Its session is its own: helpers that it started are in it, and nobody else.
        for number, patience in ((signal.SIGTERM, STOP), (signal.SIGKILL, STOP)):
            try:
                os.killpg(self._process.pid, number)
                self._process.wait(patience)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f'http://127.0.0.1:{self.port}{self.health()}', timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def ask(self, path: str, question: Any = None) -> Any:
        """A JSON object of its API; a POST where something is asked with one."""
        request = urllib.request.Request(
            f'http://127.0.0.1:{self.port}{path}',
            None if question is None else json.dumps(question).encode(),
            {'Content-Type': 'application/json'},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    @abstractmethod
    def command(self) -> list[str]:
        """What starts it."""

    def variables(self) -> dict[str, str]:
        """Its environment."""
        return {}

    @abstractmethod
    def health(self) -> str:
        """The path that answers once it is ready."""

    @abstractmethod
    def addressed(self, protocol: str, mark: str) -> dict[str, str]:
        """The variables that send a run there, as docs/observability.md has them.

        Args:
            protocol: 'grpc' or 'http/protobuf'.
            mark: What keeps it apart from other runs: a project's name, an experiment's number.
        """

    def environment(self, protocol: str, name: str) -> dict[str, str]:
        """The variables that send a run there under a name of its own."""
        return self.addressed(protocol, name)

    @abstractmethod
    def spans(self, name: str) -> list[Span]:
        """The spans of one such run, in the order they started; without the resource, which these do not keep."""


class Phoenix(Backend):
    """Arize Phoenix: runs apart are projects."""

    requirement = 'arize-phoenix==20.26.1'

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.grpc_port = _free()

    def command(self) -> list[str]:
        return ['phoenix', 'serve']

    def variables(self) -> dict[str, str]:
        return {
            'PHOENIX_WORKING_DIR': str(self.folder),
            'PHOENIX_HOST': '127.0.0.1',
            'PHOENIX_PORT': str(self.port),
            'PHOENIX_GRPC_PORT': str(self.grpc_port),
        }

    def health(self) -> str:
        return '/healthz'

    def addressed(self, protocol: str, mark: str) -> dict[str, str]:
        port = self.grpc_port if protocol == 'grpc' else self.port
        return {
            'OTEL_EXPORTER_OTLP_ENDPOINT': f'http://127.0.0.1:{port}',
            'OTEL_EXPORTER_OTLP_PROTOCOL': protocol,
            'OTEL_RESOURCE_ATTRIBUTES': f'openinference.project.name={mark}',
        }

    def spans(self, name: str) -> list[Span]:
        # It answers before what it took is in its database.
        found, before = self._listed(name), -1
        while len(found) != before:
            before = len(found)
            time.sleep(2.0)
            found = self._listed(name)
        return sorted(found, key=lambda span: (span.start, -span.end))

    def _listed(self, name: str) -> list[Span]:
        try:
            page = self.ask(f'/v1/projects/{name}/spans/otlpv1?limit=1000')
        except urllib.error.HTTPError as error:
            assert error.code == 404, error
            return []
        assert not page['next_cursor']
        return [
            _span(one, one['trace_id'], one['span_id'], one['parent_span_id'], one['status']['code'])
            for one in page['data']
        ]


class MlFlow(Backend):
    """MLflow's tracking server: runs apart are experiments."""

    requirement = 'mlflow==3.17.2'

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._experiments: dict[str, str] = {}

    def command(self) -> list[str]:
        database, artifacts = f'sqlite:///{self.folder}/mlflow.db', f'{self.folder}/artifacts'
        place = ['--host', '127.0.0.1', '--port', str(self.port), '--workers', '1']
        return ['mlflow', 'server', *place, '--backend-store-uri', database, '--artifacts-destination', artifacts]

    def health(self) -> str:
        return '/health'

    def environment(self, protocol: str, name: str) -> dict[str, str]:
        made = self.ask('/api/2.0/mlflow/experiments/create', {'name': name})
        self._experiments[name] = made['experiment_id']
        return self.addressed(protocol, made['experiment_id'])

    def addressed(self, protocol: str, mark: str) -> dict[str, str]:
        return {
            'OTEL_EXPORTER_OTLP_ENDPOINT': f'http://127.0.0.1:{self.port}',
            'OTEL_EXPORTER_OTLP_PROTOCOL': protocol,
            'OTEL_EXPORTER_OTLP_HEADERS': f'x-mlflow-experiment-id={mark}',
        }

    def spans(self, name: str) -> list[Span]:
        where = {'type': 'MLFLOW_EXPERIMENT', 'mlflow_experiment': {'experiment_id': self._experiments[name]}}
        listed = self.ask('/api/3.0/mlflow/traces/search', {'locations': [where], 'max_results': 100})
        assert not listed.get('next_page_token')
        asked = '&'.join(f'trace_ids={trace["trace_id"]}' for trace in listed.get('traces', ()))
        whole = self.ask(f'/api/3.0/mlflow/traces/batchGet?{asked}')
        found = [
            _span(
                one,
                _hex(one['trace_id']),
                _hex(one['span_id']),
                _hex(one.get('parent_span_id', '')),
                {'STATUS_CODE_ERROR': 2, 'STATUS_CODE_OK': 1}.get(one['status'].get('code', ''), 0),
            )
            for trace in whole['traces']
            for one in trace['spans']
        ]
        return sorted(found, key=lambda span: (span.start, -span.end))


def venv(requirement: str) -> Path:
    """A venv with one package and what it needs, made once; the test is skipped where it cannot be installed."""
    minor = '{}.{}'.format(*sys.version_info[:2])
    folder = CACHE / f'{requirement.replace("==", "-")}-py{minor}'
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f'{folder}.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / '.made').exists():
            subprocess.run([sys.executable, '-m', 'venv', '--clear', str(folder)], check=True)
            pip = [str(folder / 'bin' / 'python'), '-m', 'pip', '--disable-pip-version-check', '--no-input', '-q']
            done = subprocess.run([*pip, 'install', requirement], capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f'{requirement} cannot be installed here: {done.stderr[-300:]}')
            (folder / '.made').touch()
    return folder


def _span(one: Mapping[str, Any], trace: str, span: str, parent: str | None, status: int) -> Span:
    attributes = {item['key']: _value(item['value']) for item in one.get('attributes') or ()}
    start, end = int(one['start_time_unix_nano']), int(one['end_time_unix_nano'])
    return Span(one['name'], trace, span, parent or '', start, end, status, attributes, (), (), {})


def _value(value: Mapping[str, Any]) -> Any:
    [(kind, plain)] = [(kind, plain) for kind, plain in value.items() if plain is not None]
    if kind == 'array_value':
        return [_value(one) for one in plain['values']]
    return int(plain) if kind == 'int_value' else plain


def _hex(text: str) -> str:
    return base64.b64decode(text).hex()


def _free() -> int:
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]
