# SPDX-License-Identifier: Apache-2.0
"""Asks a server whose address stands in the first argument; prints what it said of the tokens, as JSON."""

from __future__ import annotations

import json
import sys
import urllib.request
from typing import Any

PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'


def post(path: str, body: dict[str, Any], **headers: str) -> bytes:
    data = json.dumps({'model': sys.argv[2], **body}).encode()
    request = urllib.request.Request(sys.argv[1] + path, data, {'Content-Type': 'application/json', **headers})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def main() -> None:
    plain = json.loads(
        post('/v1/completions', {'prompt': 'one two', 'max_tokens': 5, 'temperature': 0, 'ignore_eos': True})
    )
    chat = {'messages': [{'role': 'user', 'content': 'hi'}], 'max_tokens': 7, 'ignore_eos': True, 'stream': True}
    streamed = post('/v1/chat/completions', {**chat, 'stream_options': {'include_usage': True}}, traceparent=PARENT)
    [usage] = [
        json.loads(line[6:])['usage']
        for line in streamed.decode().splitlines()
        if line.startswith('data: {') and json.loads(line[6:]).get('usage')
    ]
    print(json.dumps([plain['usage'], usage]), flush=True)


if __name__ == '__main__':
    main()
