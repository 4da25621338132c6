# SPDX-License-Identifier: Apache-2.0
"""`lens-instrument`: from the command line to the command's own end."""

from __future__ import annotations

import gc
import os
import sys

from lens_auto.launch import own_path
from lens_auto.launch.arguments import UsageError, parse
from lens_auto.launch.command import CommandError, find
from lens_auto.launch.environment import inherited
from lens_auto.launch.output import NAME, fault, say, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn

    from lens_auto.launch.arguments import Options
    from lens_auto.launch.prepare import Prepared
    from lens_auto.launch.progress import Progress
    from lens_auto.launch.spawn import Origin
else:
    import _signal as signal

REFUSED = 2
UNRECORDED = 'the command runs without being recorded'


def main() -> NoReturn:
    """The console script."""
    # So far only modules that Python's own start has loaded, or that are built into it, were imported besides ours.
    own_path.keep(os.environ)
    # Nothing here is garbage until the command runs, and looking for it takes a tenth of what this program adds.
    gc.disable()
    # Until the command runs, Ctrl-C ends this program as it ends one in C: at once and without a traceback.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        options = parse(sys.argv[1:])
    except UsageError as error:
        say(str(error))
        sys.exit(REFUSED)
    if options.action or options.replay is not None:
        from lens_auto.launch.instead import instead

        sys.exit(instead(options))
    if not options.command:
        from lens_auto.launch.help import USAGE

        write(f'{NAME}: no command given\n{USAGE}\n')
        sys.exit(REFUSED)
    try:
        _launch(options)
    except CommandError as error:
        say(str(error))
        sys.exit(error.code)


def _launch(options: Options) -> NoReturn:
    from lens_auto.launch.spawn import Origin, replace

    origin = Origin()
    environ = dict(os.environ)
    path = find(options.command[0], environ)
    if inherited(environ):
        from lens_auto.launch.nested import join

        raise replace(options.command, path, join(options, environ), origin)
    prepared = _prepare(options, environ)
    if prepared is None:
        raise replace(options.command, path, environ, origin)
    try:
        if options.replace and options.progress:
            say('--progress shows nothing: with --exec nobody stays to show it')
        if not options.replace:
            _attend(options, path, prepared, origin)
        _give_way(options, path, prepared, origin)
    except CommandError as error:
        if not error.too_long or options.strict:
            raise
        say(UNRECORDED + ': its environment would be too long with what recording adds to it')
    raise replace(options.command, path, environ, origin)


def _prepare(options: Options, environ: dict[str, str]) -> Prepared | None:
    """The one boundary before the start: what the user got wrong is refused, what we got wrong is done without."""
    refusal = ''
    try:
        from lens_auto.launch.prepare import prepare
        from lens_auto.launch.refusal import Refusal

        try:
            prepared = prepare(options, environ)
            if prepared is not None:
                say(prepared.first_line())
            return prepared
        except Refusal as error:
            refusal = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # what we import may even call sys.exit
        fault(UNRECORDED, error)
        if not options.strict:
            return None
    if refusal:
        say(refusal)
    sys.exit(REFUSED)


def _progress(options: Options) -> Progress | None:
    if not options.progress:
        return None
    from lens_auto.launch.progress import Progress, unable

    why = unable(2, os.environ)
    if why:
        say(f'--progress shows nothing: {why}')
    return None if why else Progress(2)


def _give_way(options: Options, path: str, prepared: Prepared, origin: Origin) -> NoReturn:
    """Become the command, with a process beside it that collects."""
    from lens_auto.launch.sibling import detach
    from lens_auto.launch.spawn import replace

    try:
        detach(prepared)
    except Exception as error:
        fault('nothing collects beside this run', error)
    raise replace(options.command, path, prepared.environ, origin)


def _attend(options: Options, path: str, prepared: Prepared, origin: Origin) -> NoReturn:
    """Start the command and stay to its end."""
    from lens_auto.launch.ending import leave
    from lens_auto.launch.recording import Recording
    from lens_auto.launch.signals import Vigil, block
    from lens_auto.launch.spawn import start

    block()
    if signal.sigpending():
        # Told before there was a command: this process is still the one that was meant.
        signal.pthread_sigmask(signal.SIG_SETMASK, origin.mask)
        block()
    try:
        child = start(options.command, path, prepared.environ, origin)
    except CommandError:
        prepared.discard()
        raise
    summary = options.summary and not os.environ.get('LENS_NO_SUMMARY')
    recording = Recording(prepared, summary, _progress(options), options.steps)
    recording.begin()
    try:
        status = Vigil(child).wait()
    except Exception as error:
        fault('signals are no longer passed on to the command', error)
        status = os.waitpid(child, 0)[1]
    recording.end(status)
    if options.strict and recording.doubts and status == 0:
        say('--strict: ' + '\n    '.join(recording.doubts))
        status = 1 << 8
    leave(status)
