# SPDX-License-Identifier: Apache-2.0
"""A Ray cluster of one node that a test starts, holds and ends itself; `ray stop` would end everybody's."""

from __future__ import annotations

import socket
import subprocess
import time
from types import TracebackType

from tests.helpers.ray_program import RayPlace


class Cluster:
    """`ray start --head` in the foreground, out of a place's Ray folder; use it in a `with`."""

    def __init__(self, place: RayPlace, resources: str = '') -> None:
        self._place = place
        self._resources = resources
        self.address = f'127.0.0.1:{_free()}'

    def __enter__(self) -> Cluster:
        arguments = {
            'port': self.address.partition(':')[2],
            'node-ip-address': '127.0.0.1',
            'num-cpus': '2',
            'include-dashboard': 'false',
            'temp-dir': str(self._place.ray_folder / 'head'),
        }
        if self._resources:
            arguments['resources'] = self._resources
        # A minimal Ray has no Ray Client, and older ones refuse its port then.
        if not subprocess.run([self._place.python, '-c', 'import grpc'], capture_output=True).returncode:
            arguments['ray-client-server-port'] = str(_free())
        options = [f'--{name}={value}' for name, value in arguments.items()]
        self._log = open(self._place.folder / 'head.log', 'wb')
        self._process = subprocess.Popen(
            [
                self._place.python,
                '-m',
                'ray.scripts.scripts',
                'start',
                '--head',
                '--block',
                '--disable-usage-stats',
                *options,
            ],
            cwd=self._place.folder,
            env=self._place.env,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        deadline = time.monotonic() + 60
        while not self._answers():
            assert self._process.poll() is None and time.monotonic() < deadline, self._said()
            time.sleep(0.2)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _answers(self) -> bool:
        return 'Ray runtime started' in self._said()

    def _said(self) -> str:
        return (self._place.folder / 'head.log').read_text(errors='replace')


def _free() -> int:
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]
