# SPDX-License-Identifier: Apache-2.0
"""uvicorn and gunicorn with two workers: each a process of the run, and nothing lost when they are told to end."""

from __future__ import annotations

import signal
import socket
import time
import urllib.error
import urllib.request

import pytest

from tests.helpers.packages import python_with
from tests.helpers.run import LENS, PATIENCE, Place, Run

pytestmark = [pytest.mark.frameworks, pytest.mark.slow, pytest.mark.timeout(600)]

RULES = """
framework: mine
rules:
- {kind: function, target: 'work:step', group: rollout, name: step}
"""
APP = """
import os, work
def wsgi(environ, start_response):
    work.step()
    start_response('200 OK', [('Content-Type', 'text/plain')])
    return [str(os.getpid()).encode()]
async def asgi(scope, receive, send):
    assert scope['type'] == 'http'
    work.step()
    await send({'type': 'http.response.start', 'status': 200, 'headers': []})
    await send({'type': 'http.response.body', 'body': str(os.getpid()).encode()})
"""
WORK = 'def step(): pass\n'
SERVERS = {
    'gunicorn': ['-m', 'gunicorn', '-w', '2', '-b', '127.0.0.1:{port}', 'app:wsgi'],
    'uvicorn': ['-m', 'uvicorn', '--workers', '2', '--port', '{port}', '--lifespan', 'off', 'app:asgi'],
}


def _free_port() -> int:
    with socket.create_server(('127.0.0.1', 0)) as found:
        return found.getsockname()[1]


def _ask(port: int) -> str:
    with urllib.request.urlopen(f'http://127.0.0.1:{port}/', timeout=5) as answer:
        return answer.read().decode()


def _serve(place: Place, command: list[str], port: int) -> tuple[list[str], int]:
    """Start a server, ask it until it has answered forty times, and tell it to end."""
    server = place.start(*command)
    answers: list[str] = []
    deadline = time.monotonic() + PATIENCE
    try:
        while len(answers) < 40 and time.monotonic() < deadline:
            try:
                answers.append(_ask(port))
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=PATIENCE)
    return answers, server.returncode


@pytest.mark.parametrize('name', SERVERS)
def test_a_server_with_two_workers(place: Place, name: str) -> None:
    python = python_with('uvicorn', 'gunicorn')
    place.write({'app.py': APP, 'work.py': WORK, 'lens.yaml': RULES})
    codes: list[int] = []
    for before in ([], [LENS, '--no-summary', '--set', 'span_groups=all']):
        port = _free_port()
        command = [*before, python, *(word.replace('{port}', str(port)) for word in SERVERS[name])]
        answers, code = _serve(place, command, port)
        codes.append(code)
        assert len(answers) == 40
    assert codes[0] == codes[1]
    run: Run = place.run
    steps = run.named('step')
    assert len(steps) == 40
    # What each worker answered is what it recorded.
    assert sorted(str(step.resource['process.pid']) for step in steps) == sorted(answers)
    assert len({step.resource['service.instance.id'] for step in steps}) == len(set(answers))


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp('served'))
