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
from lens_auto.launch import plan
from lens_auto.launch.output import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.collect.totals import RuleRow, Totals
    from lens_auto.launch.prepare import Prepared
    from lens_auto.rules.plan_cache import Compiled


def collector(prepared: Prepared) -> Collector:
    """Start collecting a run.

    Args:
        prepared: The run.
    """
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
    )
    started.start()
    gc.enable()
    return started


def facts(prepared: Prepared) -> dict[str, Any]:
    """What run.json says of the run besides what is measured.

    Args:
        prepared: The run.
    """
    resolved = prepared.decided.resolved
    shown = plan.rules_of(prepared.decided.compiled, resolved)
    return {
        'command': prepared.command,
        'settings': {name: [value, str(resolved.source(name))] for name, value in resolved.values.items()},
        'rules': shown.rules,
        'groups_off': shown.groups_off,
        'notes': prepared.notes,
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
    """Rules that matched nothing, or not what they were written for, and faults of ours.

    Of the rules that are on, those count that the user named, and those of a file of which another rule matched: most
    built-in files are for frameworks that this run does not use.

    Args:
        totals: What the run came to.
        compiled: The plan.
    """
    active = {path for path, _, _, origin in compiled.files if origin in plan.NAMED}
    active |= {_file(rule) for rule in totals.rules if rule.processes}
    found: list[str] = []
    for rule in totals.rules:
        said = f'rule {rule.name or rule.key} ({rule.where})'
        if rule.on and _file(rule) in active and not rule.processes:
            reasons = ', '.join(rule.missing) or 'its module was not imported'
            found.append(f'{said} matched nothing: {reasons}')
        if rule.faults:
            found.append(f'{said} failed: ' + ', '.join(rule.faults))
    found += [f'{what} ({count} times)' for what, count in totals.faults.items()]
    return found


def _file(rule: RuleRow) -> str:
    return rule.where.rpartition(':')[0]
