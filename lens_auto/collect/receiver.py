# SPDX-License-Identifier: Apache-2.0
"""Takes spans that a framework's own exporter sends, where the run has no OTLP endpoint of its own to send them to.

OTLP over HTTP on 127.0.0.1 alone, at a port the kernel chooses, below a path that only processes of this run are told.
There is no listener unless a setting asks for such spans.
"""

from __future__ import annotations

import _thread
import os
from collections import deque
from time import sleep

from lens_auto.collect.received import Damaged, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from http.server import ThreadingHTTPServer
    from typing import Any

    from lens_auto.collect.received import Received

VARIABLE = 'LENS_NATIVE_ENDPOINT'
_PATH = '/v1/traces'
_LARGEST = 16 << 20  # bytes of one request, packed or not; the SDK sends 512 spans at a time
_MOST_WAITING = 100_000  # spans: beyond it senders are asked to try again
_SECONDS = 10.0  # for a sender to say what it has to
_PAUSE = 0.1  # seconds
# What the exporters of OpenTelemetry try again.
_OK, _BAD, _NOT_FOUND, _TOO_LARGE, _LATER = 200, 400, 404, 413, 503


class Receiver:
    """A listening socket, and what came in.

    Attributes:
        endpoint: Where senders send to: a URL without the signal's own path.
        damaged: Requests that were no OTLP.
        refused: Requests that were told to try again.
    """

    def __init__(self) -> None:
        """Listen; connections wait until `start`.

        Raises:
            OSError: There is no loopback, or no port.
        """
        import socket

        self._socket: socket.socket = socket.create_server(('127.0.0.1', 0), backlog=128)
        self._token = os.urandom(16).hex()
        self.endpoint = f'http://127.0.0.1:{self._socket.getsockname()[1]}/{self._token}'
        self._closed = False
        self._came: deque[Received] = deque()
        self.damaged = self.refused = 0

    def fileno(self) -> int:
        """The listening socket's descriptor."""
        return self._socket.fileno()

    def close(self) -> None:
        """Listen no longer; the thread that does comes to its end."""
        import socket

        self._closed = True
        try:
            self._socket.shutdown(socket.SHUT_RDWR)  # what ends a blocked `accept`, as closing alone does not
        except OSError:
            pass  # not on every system
        self._socket.close()

    def start(self) -> None:
        """Take what comes, in threads of their own that nobody waits for."""
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

        take, path = self._take, f'/{self._token}{_PATH}'

        class Handler(BaseHTTPRequestHandler):
            timeout = _SECONDS
            protocol_version = 'HTTP/1.1'

            def do_POST(self) -> None:
                length = self.headers.get('Content-Length') or ''
                status, body = _NOT_FOUND, b''
                # Not compared in constant time: who can measure that on this machine's loopback can read /proc as well.
                if self.path == path:
                    status = _TOO_LARGE
                    if length.isdigit() and int(length) <= _LARGEST:
                        body = self.rfile.read(int(length))
                        status = take(body, self.headers.get('Content-Encoding') or '')
                if not body:
                    self.close_connection = True
                self.send_response(status)
                self.send_header('Content-Type', 'application/x-protobuf')
                self.send_header('Content-Length', '0')
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing: the launcher's output is the program's."""

        server = ThreadingHTTPServer(('127.0.0.1', 0), Handler, bind_and_activate=False)
        server.socket.close()
        server.socket = self._socket
        server.server_name, server.server_port = '127.0.0.1', self._socket.getsockname()[1]
        server.daemon_threads = True
        # A sender that hangs up is no news.
        server.handle_error = lambda request, client_address: None
        _thread.start_new_thread(self._accept, (server,))

    def _accept(self, server: ThreadingHTTPServer) -> None:
        while True:
            try:
                request, address = self._socket.accept()
            except OSError:
                if self._closed:
                    return
                sleep(_PAUSE)  # no descriptor is left, or the sender is gone: it tries again
                continue
            try:
                server.process_request(request, address)
            except RuntimeError:  # no thread can be started
                server.shutdown_request(request)
                sleep(_PAUSE)

    def _take(self, body: bytes, encoding: str) -> int:
        if len(self._came) >= _MOST_WAITING:
            self.refused += 1
            return _LATER
        try:
            self._came.extend(spans(_unpacked(body) if encoding == 'gzip' else body))
        except Damaged:
            self.damaged += 1
            return _BAD
        return _OK

    def taken(self) -> list[Received]:
        """What has come since the last call."""
        found: list[Received] = []
        while self._came:
            found.append(self._came.popleft())
        return found


def _unpacked(body: bytes) -> bytes:
    import zlib

    try:
        packed = zlib.decompressobj(16 + zlib.MAX_WBITS)
        data = packed.decompress(body, _LARGEST)
    except zlib.error as error:
        raise Damaged(str(error)) from None
    if packed.unconsumed_tail:
        raise Damaged('too large')
    return data
