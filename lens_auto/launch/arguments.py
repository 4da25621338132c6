# SPDX-License-Identifier: Apache-2.0
"""The launcher's own arguments, read by hand: argparse alone would cost half a start of Python."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SETTINGS = {
    '--span-groups': 'span_groups',
    '--exporter': 'exporter',
    '--service-name': 'service_name',
}
"""Options that are a setting of the `telemetry:` block, and its name there."""

VALUED = {
    '--rules': 'a rule file',
    '--telemetry': 'a YAML file with a `telemetry:` block',
    '--span-groups': 'groups or presets, comma separated',
    '--exporter': 'file, otlp or console',
    '--run-dir': 'a folder',
    '--service-name': 'a name',
    '--set': 'field=value',
    '--replay': 'a run folder',
}
"""Options that take a value, and what that value is."""

SWITCHES = ('--strict', '--exec', '--no-summary', '--info', '--version', '--help')
"""Options that take none."""

PROGRESS = '--progress'
"""May have one, after an equals sign: how many steps there are to be."""


class UsageError(Exception):
    """The command line cannot be understood; the text names the argument and the nearest right one."""


class Options:
    """What the command line asked for.

    Attributes:
        rules: Rule files of `--rules`, in order.
        telemetry: The file of `--telemetry`, or None.
        settings: Settings named by flags: the field to the text given, and `set` to the `field=value` ones in order.
        run_dir: The folder of `--run-dir`, or None.
        replay: The folder of `--replay`, or None.
        action: What to do instead of running: 'help', 'version', 'info', or ''.
        strict: Whether doubts are errors.
        replace: Whether the command replaces the launcher (`--exec`).
        summary: Whether the summary is printed at the end.
        progress: Whether a line says how the run gets along.
        steps: How many steps there are to be, 0 where that was not said.
        command: The command and its arguments.
    """

    __slots__ = (
        *('rules', 'telemetry', 'settings', 'run_dir', 'strict', 'replace', 'summary'),
        *('action', 'replay', 'command', 'progress', 'steps'),
    )

    def __init__(self) -> None:
        self.rules: list[str] = []
        self.telemetry: str | None = None
        self.settings: dict[str, str | list[str]] = {}
        self.run_dir: str | None = None
        self.replay: str | None = None
        self.action = ''
        self.strict = False
        self.replace = False
        self.summary = True
        self.progress = False
        self.steps = 0
        self.command: list[str] = []


def parse(arguments: Sequence[str]) -> Options:
    """Read the launcher's options up to the command; the command's own arguments are not looked at.

    Args:
        arguments: The command line without the launcher's name.

    Raises:
        UsageError: An option is unknown, lacks its value, or has one it does not take.
    """
    options = Options()
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word == '--':
            at += 1
            break
        if not word.startswith('-') or word == '-':
            break
        at += 1
        name, equals, value = word.partition('=')
        if name in VALUED:
            if not equals:
                if at >= len(arguments) or arguments[at].startswith('--'):
                    raise UsageError(f'option {name} needs a value: {VALUED[name]}')
                value = arguments[at]
                at += 1
            _take(options, name, value)
        elif name == PROGRESS:
            options.progress = True
            if equals:
                options.steps = _steps(value)
        elif name in SWITCHES or name == '-h':
            if equals:
                raise UsageError(f'option {name} takes no value')
            _switch(options, name)
        else:
            raise UsageError(_unknown(name))
    options.command = list(arguments[at:])
    return options


def _take(options: Options, name: str, value: str) -> None:
    if not value:
        raise UsageError(f'option {name} needs a value: {VALUED[name]}')
    if name in SETTINGS:
        options.settings[SETTINGS[name]] = value
    elif name == '--rules':
        options.rules.append(value)
    elif name == '--set':
        if value.find('=') < 1:
            raise UsageError(f'option --set needs field=value, not `{value}`')
        assignments = options.settings.setdefault('set', [])
        assert isinstance(assignments, list)
        assignments.append(value)
    elif name == '--telemetry':
        options.telemetry = value
    elif name == '--run-dir':
        options.run_dir = value
    else:
        options.replay = value


def _steps(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise UsageError(f'option {PROGRESS}={text} needs a number of steps, or none: {PROGRESS}=300')
    return int(text)


def _switch(options: Options, name: str) -> None:
    if name == '--strict':
        options.strict = True
    elif name == '--exec':
        options.replace = True
    elif name == '--no-summary':
        options.summary = False
    elif not options.action or name in ('--help', '-h'):  # help wins over whatever else is asked
        options.action = 'help' if name == '-h' else name[2:]


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [*VALUED, *SWITCHES, PROGRESS], 1)
    hint = f'did you mean `{close[0]}`?' if close else '`lens-instrument --help` lists the options.'
    return f'unknown option `{name}`\n    {hint}  Options of the command itself go after it.'
