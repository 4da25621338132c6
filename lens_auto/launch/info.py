# SPDX-License-Identifier: Apache-2.0
"""`--info`: what a run would be, for a person who wonders why it is so. Nothing is created or started."""

from __future__ import annotations

import sys

from lens_auto import __version__
from lens_auto.launch import bootstrap, plan
from lens_auto.launch.command import CommandError, find
from lens_auto.launch.environment import inherited, shown
from lens_auto.launch.output import NAME
from lens_auto.launch.prepare import decide
from lens_auto.settings import redact
from lens_auto.settings.describe import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.launch.arguments import Options
    from lens_auto.launch.prepare import Decided


def info(options: Options, environ: dict[str, str]) -> str:
    """The text.

    Args:
        options: The launcher's arguments; with a command, its own settings count as they would in a run.
        environ: The launcher's environment.

    Raises:
        Refusal: A rule file, a setting or a span group is wrong.
    """
    decided = decide(options, environ)
    parts = [
        ('', [f'{NAME} {__version__}']),
        ('python', _python(environ)),
        ('command', _command(options, environ)),
        ('settings', [redact.text(line) for line in describe(decided.resolved)]),
        ('announcements', [redact.text(line) for line in decided.announcements]),
        *_rules(decided, options.command),
    ]
    return '\n\n'.join(
        '\n'.join([title, *(f'  {line}' for line in lines)] if title else lines) for title, lines in parts if lines
    )


def _python(environ: dict[str, str]) -> list[str]:
    lines = [f'{sys.version.split()[0]}  {sys.executable}', f'lens-auto in {bootstrap.home()}']
    try:
        return [*lines, f'stage 1 in {bootstrap.folder(environ)}']
    except bootstrap.NoBootstrap as error:
        return [*lines, f'stage 1: {error}']


def _command(options: Options, environ: dict[str, str]) -> list[str]:
    if not options.command:
        return []
    try:
        lines = [f'{" ".join(redact.argv(options.command))}  ({find(options.command[0], environ)})']
    except CommandError as error:
        lines = [str(error)]
    if inherited(environ):
        lines.append(f'inside run {environ.get("LENS_RUN_ID", "")}: it would only be executed')
    return lines


def _rules(decided: Decided, command: list[str]) -> list[tuple[str, list[str]]]:
    compiled = decided.compiled
    files = [
        f'{shown(path)}  {framework}  from {origin}' + (f', where {package} is importable' if package else '')
        for path, framework, package, origin in compiled.files
    ]
    near = plan.near(compiled, command)
    rules = plan.rules_of(compiled, decided.resolved, near.__contains__).rules
    cache = [f'plan cache: {compiled.problem}'] if compiled.problem else []
    return [
        ('rule files', [*files, *cache] or ['none']),
        ('hooked', _table([_row(rule) for rule in rules if rule['on']]) or ['nothing']),
        ('off', _table([_row(rule) for rule in rules if not rule['on']])),
    ]


def _row(rule: dict[str, Any]) -> list[str]:
    return [rule['name'] or rule['kind'], rule['group'] or '-', ' '.join(rule['targets']), shown(rule['where'])]


def _table(rows: list[list[str]]) -> list[str]:
    if not rows:
        return []
    # A timer with many labels has many groups; the column is for the others.
    widths = [min(40, max(len(row[column]) for row in rows)) for column in range(2)]
    return [f'{name:{widths[0]}}  {group:{widths[1]}}  {targets}  {where}' for name, group, targets, where in rows]
