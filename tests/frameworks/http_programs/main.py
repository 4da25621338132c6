# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""Two servers, and a program that asks them by each of the usual libraries; prints what it was answered."""

import asyncio
import signal
import socket
import subprocess
import sys
import threading
import time

import aiohttp
import httpx
import requests
import work
from flask import Flask
from werkzeug.serving import make_server


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def flask_server():
    app = Flask('small')

    @app.get('/hello/<name>')
    def hello(name):
        return f'hello {name}'

    @app.get('/boom')
    def boom():
        raise ValueError('no')

    made = make_server('127.0.0.1', 0, app, threaded=True)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    return made.server_port


first, second, third = free_port(), free_port(), flask_server()
base = f'http://127.0.0.1:{first}'
servers = [
    subprocess.Popen([sys.executable, 'server.py', str(first), str(second), 'h11']),
    subprocess.Popen([sys.executable, 'server.py', str(second), '0', 'httptools']),
]
for port in (first, second):
    while True:
        try:
            assert httpx.get(f'http://127.0.0.1:{port}/health', timeout=None).status_code == 200
            break
        except httpx.ConnectError:
            time.sleep(0.1)


async def with_aiohttp(count):
    async with aiohttp.ClientSession() as client:

        async def one(task):
            async with client.post(f'{base}/run/{task}') as answer:
                return (await answer.json())['task']

        return await asyncio.gather(*(one(task) for task in range(count)))


def rollouts():
    print('httpx', work.rollout(lambda: httpx.post(f'{base}/run/101', timeout=None).json()))
    print('requests', work.rollout(lambda: requests.post(f'{base}/run/102').json()))
    print('aiohttp', work.rollout(lambda: asyncio.run(with_aiohttp(200))) == list(range(200)))


def others():
    print('stream', requests.get(f'{base}/stream').content)
    for path in ('fails', 'missing', 'nowhere', 'part/inner/3'):
        print(path, httpx.get(f'{base}/{path}', timeout=None).status_code)
    for path in ('hello/you', 'boom'):
        print(path, requests.get(f'http://127.0.0.1:{third}/{path}').status_code)
    try:
        httpx.get(f'http://127.0.0.1:{second}/dies', timeout=None)
    except httpx.RemoteProtocolError:
        print('gone')


try:
    work.train(rollouts)
    others()
    servers[0].send_signal(signal.SIGINT)
    print([server.wait() for server in servers])
finally:
    for server in servers:
        server.kill()
