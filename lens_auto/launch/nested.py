# SPDX-License-Identifier: Apache-2.0
"""A launcher inside a run: it only executes its command, which the outer launcher already sees."""

from __future__ import annotations

from lens_auto.launch import bootstrap
from lens_auto.launch.environment import has_entry, with_entry
from lens_auto.launch.output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from lens_auto.launch.arguments import Options


def join(options: Options, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for the command: as it is, unless something in between took our entry out of PYTHONPATH.

    Args:
        options: The launcher's arguments; the outer launcher's have decided, and these are said to be ignored.
        environ: The launcher's environment.
    """
    if options.settings or options.rules or options.telemetry or options.run_dir:
        say(f'inside run {environ.get("LENS_RUN_ID", "")} already: its settings hold, the ones given here are ignored')
    child = dict(environ)
    try:
        # Another installation's stage 1 is not ours to look for.
        if environ.get('LENS_HOME') == bootstrap.home():
            entry = bootstrap.folder(environ)
            if not has_entry(environ.get('PYTHONPATH'), entry):
                child['PYTHONPATH'] = with_entry(environ.get('PYTHONPATH'), entry)
    except bootstrap.NoBootstrap:
        pass
    return child
