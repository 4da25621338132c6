# SPDX-License-Identifier: Apache-2.0
"""What the launcher says. It says it on stderr: stdout is the command's."""

from __future__ import annotations

import os
import sys

NAME = 'lens-instrument'


def say(text: str) -> None:
    """Write a message under the launcher's name, in one piece.

    Args:
        text: The message; further lines of it are kept as they are.
    """
    write(f'{NAME}: {text}\n')


def write(text: str) -> None:
    """Write `text` to stderr, if there is one; a reader that has gone away is no reason to fail.

    Args:
        text: The text.
    """
    if sys.stderr is None:
        return  # closed at our start: descriptor 2 may be one of our own files by now
    data = text.encode('utf-8', 'surrogateescape')
    try:
        while data:
            data = data[os.write(2, data) :]
    except OSError:
        pass


def fault(where: str, error: BaseException) -> None:
    """Report an error of our own in one line: what failed, and the innermost place.

    The message of an exception is left out: it may quote what nobody wants in a log.

    Args:
        where: What the launcher was doing, and what becomes of the run.
        error: The error.
    """
    place = ''
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        place = f' at {os.path.basename(code.co_filename)}:{trace.tb_lineno}'
        trace = trace.tb_next
    reason = f' ({error.strerror})' if isinstance(error, OSError) and error.strerror else ''
    say(f'{where}: {type(error).__name__}{reason}{place}')
