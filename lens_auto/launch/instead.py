# SPDX-License-Identifier: Apache-2.0
"""What `lens-instrument` does instead of running a command: --help, --version, --info, --replay."""

from __future__ import annotations

import os
import sys

from lens_auto.launch.output import NAME, fault, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal

    from lens_auto.launch.arguments import Options
else:
    import _signal as signal


def instead(options: Options) -> int:
    """Do it; the exit code.

    Args:
        options: The launcher's arguments.
    """
    if options.replay is None:
        # `--info | head` ends as any program does whose reader has seen enough.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if options.action == 'help':
        from lens_auto.launch.help import HELP

        sys.stdout.write(HELP)
        return 0
    if options.action == 'version':
        from lens_auto import __version__

        print(f'{NAME} {__version__}')
        return 0
    if options.action == 'info':
        from lens_auto.launch.info import info
        from lens_auto.launch.refusal import Refusal

        try:
            print(info(options, dict(os.environ)))
        except Refusal as error:
            say(str(error))
            return 2
        return 0
    from lens_auto.collect.replay import replay

    assert options.replay is not None
    try:
        return replay(options.replay, dict(os.environ))
    except Exception as error:  # the boundary; it can be tried again
        fault('the run folder is not finished', error)
        return 1
