# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""A server as a user writes it; `peer` is another one, which it asks."""

import asyncio
import os
import sys
import time

import httpx
import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

port, peer, parser = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
app = FastAPI()


@app.get('/health')
def health():
    return 'ok'


@app.post('/run/{task}')
async def run(task: int):
    if not peer:
        return {'task': task}
    async with httpx.AsyncClient(timeout=None) as client:
        return (await client.post(f'http://127.0.0.1:{peer}/run/{task}?token=a-secret')).json()


@app.get('/stream')
async def stream():
    async def body():
        for _ in range(3):
            await asyncio.sleep(0.05)
            yield b'x'
        with open('streamed', 'w') as file:
            file.write(str(time.time_ns()))

    return StreamingResponse(body())


@app.get('/fails')
def fails():
    raise ValueError('no')


@app.get('/missing')
def missing():
    raise HTTPException(404)


@app.get('/dies')
async def dies():
    os._exit(7)


async def inner(request):
    return PlainTextResponse('inner')


app.mount('/part', Starlette(routes=[Route('/inner/{x}', inner)]))
uvicorn.run(app, host='127.0.0.1', port=port, log_level='critical', http=parser)
