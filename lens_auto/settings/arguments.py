# SPDX-License-Identifier: Apache-2.0
"""What the program's own arguments say: `telemetry.x=y` overrides and the config file they name."""

from __future__ import annotations

import os

from lens_auto.settings.interpolation import unquoted

_BLOCK = 'telemetry'


def overrides(command: list[str]) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """The `telemetry.x=y`, `+telemetry.x=y` and `++telemetry.x=y` of a command.

    Returns:
        name -> (value, the argument), the last one of a name; and the arguments that set the block in a way that is
        not read.
    """
    found: dict[str, tuple[str, str]] = {}
    unread: list[str] = []
    for argument in command[1:]:
        key, equals, value = argument.partition('=')
        key = key[2:] if key.startswith('++') else key[1:] if key.startswith('+') else key
        if not equals or not key.startswith(_BLOCK):
            continue
        if key == _BLOCK:
            unread.append(argument)
        elif key.startswith(_BLOCK + '.'):
            value = unquoted(value.strip())
            # Hydra's spelling of a list; its plain commas mean a sweep.
            if value.startswith('[') and value.endswith(']'):
                value = ','.join(unquoted(item.strip()) for item in value[1:-1].split(','))
            found[key[len(_BLOCK) + 1 :]] = ('' if value == 'null' else value, argument)
    return found, unread


def config_file(command: list[str]) -> str | None:
    """The config file a command names: `--config FILE`, or Hydra's `--config-path DIR --config-name NAME`.

    A config path of Hydra's is relative to the program's script. A name without a path lies wherever the program's
    source says: not known here.
    """
    # The last one counts, as with argparse.
    file = _option(command, ('--config',))
    if file is not None:
        return file
    folder = _option(command, ('--config-path', '-cp', '--config-dir', '-cd'))
    name = _option(command, ('--config-name', '-cn'))
    if not folder or not name:
        return None
    script = next((argument for argument in command[1:] if argument.endswith('.py')), '')
    return os.path.join(os.path.dirname(script), folder, name if name.endswith('.yaml') else name + '.yaml')


def _option(command: list[str], names: tuple[str, ...]) -> str | None:
    found = None
    for position, argument in enumerate(command):
        name, equals, value = argument.partition('=')
        if name not in names or not position:
            continue
        if equals:
            found = value or found
        elif position + 1 < len(command):
            found = command[position + 1] or found
    return found
