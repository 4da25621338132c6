# SPDX-License-Identifier: Apache-2.0
"""Starts the collector with what the launcher knows of the run, and reads off it at the end what the user is told.

Imported when the command runs already, and kept as light as what comes before it: a short command is over by then, and
waits for us.
"""

from __future__ import annotations

import gc
import os
import sys

from lens_auto.collect.collector import Collector
from lens_auto.collect.look import look_of
from lens_auto.launch import absent, plan
from lens_auto.launch.environment import working_directory
from lens_auto.launch.output import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.collect.totals import RuleRow, Totals
    from lens_auto.launch.prepare import Prepared
    from lens_auto.launch.progress import Progress
    from lens_auto.rules.plan_cache import Compiled


def collector(prepared: Prepared, progress: Progress | None = None, steps: int = 0) -> Collector:
    """Start collecting a run.

    Args:
        prepared: The run.
        progress: Shows how it gets along.
        steps: How many steps there are to be, 0 where nobody said.
    """
    if not working_directory():
        os.chdir('/')  # the command has its own; whoever names a relative path here would fail
    resolved = prepared.decided.resolved
    prints = resolved.value('exporter') == 'console' and not prepared.alone
    started = Collector(
        prepared.spool.path,
        prepared.folder,
        prepared.run,
        resolved.values,
        console_fd=1 if prints else None,
        facts=facts(prepared),
        environ=prepared.given,
        receiver=prepared.receiver,
    )
    if progress is not None:
        started.tell(progress, steps)
    started.start()
    gc.enable()
    return started


def facts(prepared: Prepared) -> dict[str, Any]:
    """What run.json says of the run besides what is measured.

    Args:
        prepared: The run.
    """
    resolved = prepared.decided.resolved
    compiled = prepared.decided.compiled
    near = plan.near(compiled, prepared.command)
    shown = plan.rules_of(compiled, resolved, near.__contains__)

    places: list[str] = []

    def lacking(module: str) -> str:
        places[:] = places or absent.folders(prepared.command)
        return absent.absent(module, places)

    def select(spec: str, every: bool) -> tuple[list[dict[str, Any]], list[str]]:
        chosen = plan.rules_with(compiled, resolved, spec, lambda path: every or path in near)
        return chosen.rules, chosen.groups_off

    def others() -> list[dict[str, Any]]:
        return plan.rules_of(compiled, resolved, lambda path: path not in near).rules

    return {
        'command': prepared.command,
        'settings': {name: [value, str(resolved.source(name))] for name, value in resolved.values.items()},
        'rules': shown.rules,
        'groups_off': shown.groups_off,
        'named': [path for path, _, _, origin in compiled.files if origin in plan.NAMED],
        'notes': prepared.notes,
        'select': select,
        'others': others,
        'absent': lacking,
    }


def finish(collector: Collector, prepared: Prepared, status: int | None, seconds: float, summary: bool) -> list[str]:
    """Collect the rest and print the summary.

    Args:
        collector: The collector.
        prepared: The run.
        status: The command's wait status, or None when somebody else waits for it.
        seconds: For all of it.
        summary: Whether the summary is wanted.

    Returns:
        With `--strict`, what makes this run a doubtful one, a line each.
    """
    code = signal = None
    if status is not None:
        if os.WIFSIGNALED(status):
            signal = os.WTERMSIG(status)
        else:
            code = os.WEXITSTATUS(status)
    totals = collector.finish(seconds, code, signal)
    if summary:
        encoding = sys.stderr.encoding if sys.stderr is not None else None
        write(collector.summary(look_of(2, collector.environ, encoding)))
    return doubts(totals, prepared.decided.compiled) if prepared.strict else []


def doubts(totals: Totals, compiled: Compiled) -> list[str]:
    """Rules that matched nothing or in part, attributes that could not be read, and faults of ours.

    Of the rules that are on, those count that the user named, and those of a file of which another rule matched: most
    built-in files are for frameworks that this run does not use. A module that was not imported counts only where all
    of a file the user named matched nothing: else it is for another mode of the program.

    Args:
        totals: What the run came to.
        compiled: The plan.
    """
    named = {path for path, _, _, origin in compiled.files if origin in plan.NAMED}
    matched = {_file(rule) for rule in totals.rules if rule.processes}
    found: list[str] = []
    others = dict(totals.faults)  # those of no rule, once those of the rules are taken off
    for rule in totals.rules:
        said = f'rule {rule.name or rule.key} ({rule.where})'
        if rule.on and not rule.off and not rule.processes:
            if _file(rule) in (named | matched if rule.missing else named - matched):
                reasons = ', '.join(rule.missing) or 'its module was not imported'
                found.append(f'{said} matched nothing: {reasons}')
        elif rule.processes and rule.missing:
            found.append(f'{said} matched in part: ' + ', '.join(rule.missing))
        for what, count in rule.faults.items():
            found.append(f'{said} failed: {what} ({count} times)')
            others[what] = others.get(what, 0) - count
    found += [f'{what} ({count} times)' for what, count in others.items() if count > 0]
    return found


def _file(rule: RuleRow) -> str:
    return rule.where.rpartition(':')[0]
