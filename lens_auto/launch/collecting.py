# SPDX-License-Identifier: Apache-2.0
"""Starts the collector with what the launcher knows of the run, and reads off it at the end what the user is told.

Imported when the command runs already: this is where json, threading and the rest of the collector come in.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from lens_auto.collect.collector import Collector
from lens_auto.collect.look import look_of
from lens_auto.launch import plan
from lens_auto.launch.output import write

if TYPE_CHECKING:
    from lens_auto.collect.totals import Totals
    from lens_auto.launch.prepare import Prepared


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
    return started


def facts(prepared: Prepared) -> dict[str, Any]:
    """What run.json says of the run besides what is measured.

    Args:
        prepared: The run.
    """
    resolved = prepared.decided.resolved
    shown = plan.shown(prepared.decided.compiled, str(resolved.value('span_groups')))
    return {
        'command': prepared.command,
        'settings': {name: [value, str(resolved.source(name))] for name, value in resolved.values.items()},
        'rules': shown.rules,
        'groups_off': shown.groups_off,
        'notes': prepared.notes,
    }


def finish(collector: Collector, status: int | None, seconds: float, summary: bool) -> list[str]:
    """Collect the rest and print the summary.

    Args:
        collector: The collector.
        status: The command's wait status, or None when somebody else waits for it.
        seconds: For all of it.
        summary: Whether the summary is wanted.

    Returns:
        What makes this run a doubtful one, a line each.
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
    return doubts(totals)


def doubts(totals: Totals) -> list[str]:
    """Rules that matched nothing, or not what they were written for, and faults of ours.

    Args:
        totals: What the run came to.
    """
    found: list[str] = []
    for rule in totals.rules:
        name = f'{rule.name or rule.key} ({rule.where})'
        if rule.missing:
            found.append(f'rule {name}: ' + ', '.join(rule.missing))
        elif not rule.processes:
            found.append(f'rule {name} matched nothing')
        if rule.faults:
            found.append(f'rule {name} failed: ' + ', '.join(rule.faults))
    found += [f'{what} ({count} times)' for what, count in totals.faults.items()]
    return found
