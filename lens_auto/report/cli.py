# SPDX-License-Identifier: Apache-2.0
"""The command `lens-report`: a run, seen."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = 'lens-report'
_MISSING = """{name}: {what} is not installed here
    pip install 'lens-auto[report]'    (in any environment: a run folder can be read anywhere)"""
_EPILOG = """\
RUN is a run folder, the name of one under lens-runs/, a file or folder of OTLP JSON lines (the OpenTelemetry
Collector's file exporter writes them), or a folder of journals. Without it: the newest run under lens-runs/.

exit code: 0, or 1 when there is nothing to show (no such step), or 2 when there is no such run or the command is
wrong"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `lens-report`.

    Args:
        arguments: Its arguments; those of the process unless given.

    Returns:
        0; 1 when there is nothing to show; 2 when there is no such run or the command line is wrong.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    # `lens-report RUN`: anything that is no command names a run to look over.
    if not given or (given[0] not in COMMANDS and given[0] not in ('-h', '--help', '--version')):
        given.insert(0, 'overview')
    options = parser.parse_args(_options_first(given))
    try:
        import numpy
        import rich

        del numpy, rich
    except ImportError as error:
        print(_MISSING.format(name=NAME, what=error.name or 'a library'), file=sys.stderr)
        return 2
    from lens_auto.report import commands
    from lens_auto.report.folder import NoRun

    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, 'reconfigure', None)
        if reconfigure is not None:
            reconfigure(errors='replace')  # a terminal that cannot show a character must not end the report
    try:
        return int(getattr(commands, options.command)(options))
    except NoRun as error:
        print(f'{NAME}: {error}', file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has seen enough (`| head`). Python flushes stdout once more at exit, which must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


COMMANDS = {
    'overview': 'verdict, phases, goodput, stragglers, metrics, warnings (what `lens-report RUN` shows)',
    'steps': 'every step, and what it was spent on',
    'step': 'one step: its spans as they nest, and its critical path',
    'phases': 'all phases, however deep',
    'workers': 'every process by every phase',
    'metrics': 'what the program logged',
    'system': 'CPU, memory and GPUs: by phase, by process, by GPU',
    'diff': 'two runs, phase by phase, with the noise between steps',
    'why': 'what was open in each process when it died',
    'top': 'what every process has open now, and for how long; works on a run that hangs',
    'tail': 'steps as they end',
    'export': 'the run as a Perfetto trace, as CSV or as Parquet',
    'html': 'the run as one page that needs no network',
}


_WITH_VALUE = ('--every', '--perfetto', '--csv', '--parquet', '-o', '--output')


def _options_first(given: list[str]) -> list[str]:
    """The same with its options before the rest: argparse finds an optional RUN only where nothing parts it."""
    options: list[str] = []
    rest: list[str] = []
    words = iter(given[1:])
    for word in words:
        if word == '--':
            rest += [word, *words]
        elif word.startswith('-') and len(word) > 1 and not word[1].isdigit():
            options.append(word)
            if word in _WITH_VALUE:
                options += [value for value in [next(words, None)] if value is not None]
        else:
            rest.append(word)
    return [given[0], *options, *rest]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description='Where the time of a run went, from its run folder.',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=f'{NAME} [RUN] | {NAME} COMMAND [ARGUMENTS] [RUN]',
    )
    from lens_auto import __version__

    parser.add_argument('--version', action='version', version=f'{NAME} {__version__}')
    commands = parser.add_subparsers(prog=NAME, title='commands', metavar='COMMAND', dest='command', required=True)
    for name, what in COMMANDS.items():
        command = commands.add_parser(name, help=what, description=what[0].upper() + what[1:] + '.')
        if name == 'step':
            command.add_argument('number', metavar='N', help='its rl.iteration, as `steps` lists it; -1 is the last')
        if name == 'diff':
            command.add_argument('before', metavar='A', help='the run before')
            command.add_argument('after', metavar='B', help='the run after')
        else:
            command.add_argument('run', metavar='RUN', nargs='?', help='by default the newest under lens-runs/')
        if name not in ('export', 'html'):
            said = 'an object a line for each step' if name == 'tail' else 'the tables as JSON'
            command.add_argument('--json', action='store_true', help=f'{said}, times in nanoseconds')
        if name in ('top', 'tail'):
            command.add_argument('--once', action='store_true', help='look once; so does output that is no terminal')
            command.add_argument('--every', type=float, default=1.0, metavar='SECONDS', help='between two looks')
        if name == 'export':
            command.add_argument('--perfetto', metavar='FILE', help='a trace for ui.perfetto.dev or chrome://tracing')
            command.add_argument('--csv', metavar='FOLDER', help='spans.csv, metrics.csv and steps.csv')
            command.add_argument('--parquet', metavar='FOLDER', help='the same as Parquet; needs pyarrow')
        if name == 'html':
            command.add_argument('-o', '--output', metavar='FILE', help='by default RUN/report.html; - is stdout')
    return parser


if __name__ == '__main__':
    sys.exit(main())
