# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven over its debugging pipe: the standard library is enough for that."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAMS = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable')
PROGRAM = next((path for path in map(shutil.which, PROGRAMS) if path), '')
_PATIENCE = 60.0


class Page:
    """One page in a browser of its own.

    Attributes:
        requests: URLs that were asked for.
        complaints: Errors and warnings on the console, and exceptions.
    """

    def __init__(self, url: str, width: int = 1200, height: int = 900) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        self._in, self._out = ours_in, ours_out
        self._rest = b''
        self._next = 0
        self._answers: dict[int, dict[str, Any]] = {}
        command = (
            f'exec "$0" --headless=new --no-sandbox --disable-gpu --no-first-run --remote-debugging-pipe '
            f'--user-data-dir="$1" --window-size={width},{height} about:blank 3<&{theirs_in} 4>&{theirs_out}'
        )
        self._process = subprocess.Popen(
            ['bash', '-c', command, PROGRAM, self._profile.name],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, 'HOME': self._profile.name},
        )
        os.close(theirs_in)
        os.close(theirs_out)
        target = self._ask('Target.createTarget', {'url': 'about:blank'}, browser=True)['targetId']
        self._session = self._ask('Target.attachToTarget', {'targetId': target, 'flatten': True}, browser=True)[
            'sessionId'
        ]
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self._ask(f'{domain}.enable')
        self.go(url)

    def close(self) -> None:
        """End the browser."""
        try:
            self._ask('Browser.close', browser=True)
            self._process.wait(20)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def go(self, url: str) -> None:
        """Load a page, until its script has drawn."""
        self._ask('Page.navigate', {'url': 'about:blank'})
        self._ask('Page.navigate', {'url': url})
        until = time.monotonic() + _PATIENCE
        while not self.js('!!(window.lensReport && lensReport.firstPaint)'):
            if time.monotonic() > until:
                raise TimeoutError(f'{url} drew nothing: {self.complaints}')
            time.sleep(0.05)

    def js(self, text: str) -> Any:
        """The value of an expression; a promise is waited for."""
        asked = {'expression': text, 'returnByValue': True, 'awaitPromise': True}
        answer = self._ask('Runtime.evaluate', asked)
        if 'exceptionDetails' in answer:
            raise AssertionError(answer['exceptionDetails'])
        return answer['result'].get('value')

    def key(self, key: str, text: str = '') -> None:
        """Press a key."""
        for kind in ('keyDown', 'keyUp'):
            more = {'text': text} if text and kind == 'keyDown' else {}
            self._ask('Input.dispatchKeyEvent', {'type': kind, 'key': key, **more})

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self._ask('Input.insertText', {'text': text})

    def wheel(self, x: float, y: float, by: float) -> None:
        """Turn the wheel over a place of the window."""
        turned = {'type': 'mouseWheel', 'x': x, 'y': y, 'deltaX': 0, 'deltaY': by}
        self._ask('Input.dispatchMouseEvent', turned)

    def mouse(self, kind: str, x: float, y: float) -> None:
        """mousePressed, mouseMoved or mouseReleased at a place of the window."""
        self._ask('Input.dispatchMouseEvent', {'type': kind, 'x': x, 'y': y, 'button': 'left', 'clickCount': 1})

    def hover(self, x: float, y: float) -> None:
        """Move the pointer to a place of the window, with no button down."""
        self._ask('Input.dispatchMouseEvent', {'type': 'mouseMoved', 'x': x, 'y': y, 'button': 'none'})

    def prefer(self, scheme: str) -> None:
        """Have the system ask for `dark` or `light`."""
        features = [{'name': 'prefers-color-scheme', 'value': scheme}]
        self._ask('Emulation.setEmulatedMedia', {'features': features})

    def picture(self, path: Path) -> None:
        """What the page shows, as PNG."""
        import base64

        path.write_bytes(base64.b64decode(self._ask('Page.captureScreenshot', {'format': 'png'})['data']))

    def _ask(self, method: str, given: dict[str, Any] | None = None, browser: bool = False) -> dict[str, Any]:
        self._next += 1
        number = self._next
        message: dict[str, Any] = {'id': number, 'method': method, 'params': given or {}}
        if not browser:
            message['sessionId'] = self._session
        os.write(self._out, json.dumps(message).encode() + b'\0')
        until = time.monotonic() + _PATIENCE
        while number not in self._answers:
            self._listen(until)
        answer = self._answers.pop(number)
        if 'error' in answer:
            raise AssertionError(f'{method}: {answer["error"]}')
        return answer['result']

    def _listen(self, until: float) -> None:
        ready, _, _ = select.select([self._in], [], [], max(0, until - time.monotonic()))
        data = os.read(self._in, 1 << 20) if ready else b''
        if not data:
            raise TimeoutError('the browser says nothing')
        *messages, self._rest = (self._rest + data).split(b'\0')
        for text in messages:
            message = json.loads(text)
            if 'id' in message:
                self._answers[message['id']] = message
            else:
                self._take(message['method'], message.get('params', {}))

    def _take(self, method: str, told: dict[str, Any]) -> None:
        if method == 'Network.requestWillBeSent':
            self.requests.append(told['request']['url'])
        elif method == 'Runtime.exceptionThrown':
            self.complaints.append(str(told['exceptionDetails']))
        elif method == 'Log.entryAdded' and told['entry']['level'] in ('error', 'warning'):
            self.complaints.append(told['entry']['text'])
        elif method == 'Runtime.consoleAPICalled' and told['type'] in ('error', 'warning', 'assert'):
            self.complaints.append(str(told['args']))
