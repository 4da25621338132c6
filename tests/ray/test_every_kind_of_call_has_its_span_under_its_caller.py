# SPDX-License-Identifier: Apache-2.0
"""One program, one Ray session, one cell per kind of call: see programs/ray_matrix/table.py for what each must show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.helpers.ray_matrix import matrix
from tests.helpers.ray_program import RayPlace, Traced, answers, rules_text
from tests.helpers.run import Done
from tests.ray.programs.ray_matrix import table

SCRIPT = 'drive_matrix.py'
ALL = (*table.TASKS, *table.ACTORS, *table.SCRIPT)

pytestmark = pytest.mark.timeout(600)


@dataclass
class Both:
    """The program without us and with us."""

    plain: Done
    traced: Traced


@pytest.fixture(scope='module')
def both(new_place: Callable[..., RayPlace]) -> Both:
    place = new_place('ray_matrix', SCRIPT)
    place.write(
        {
            'modules.yaml': rules_text(table.targets()),
            'script.yaml': rules_text(table.script_targets(SCRIPT), 'on_ray_script'),
            'a/.keep': '',
            'b/.keep': '',
        }
    )
    # A folder of its own each: what is done once leaves a file there.
    plain = place.without(SCRIPT, 'a')
    traced = place.traced(SCRIPT, 'b', rules=('modules.yaml', 'script.yaml'))
    return Both(plain, traced)


def test_the_program_runs_as_without_us(both: Both) -> None:
    assert both.plain.code == 0, both.plain.stderr[-3000:]
    assert both.traced.done.code == 0, both.traced.done.stderr[-3000:]
    # What Ray itself says of retries and dead workers holds ids, and comes when it comes.
    assert answers(both.traced.done.stdout) == answers(both.plain.stdout)


@pytest.mark.parametrize(
    'cells', [table.TASKS, table.ACTORS, table.SCRIPT], ids=['tasks', 'actors', 'classes of the script']
)
def test_the_matrix_of_calls(both: Both, cells: tuple[table.Cell, ...]) -> None:
    shown, wrong = matrix(both.plain, both.traced, cells)
    print('\n' + shown)
    assert not wrong, shown


def test_no_span_is_there_that_no_cell_expects(both: Both) -> None:
    expected = {'lens.run'} | {f'phase_{cell.name}' for cell in ALL} | {b.name for cell in ALL for b in cell.bodies}
    assert {span.name for span in both.traced.spans} <= expected
    ids = [span.id for span in both.traced.spans]
    assert len(ids) == len(set(ids))


def test_a_call_is_in_the_trace_of_the_run(both: Both) -> None:
    """No rule of these starts a trace, so there is one, and every parent named is in it."""
    spans = both.traced.spans
    assert len({span.trace for span in spans}) == 1
    assert {span.parent for span in spans if span.parent} <= {span.id for span in spans}
