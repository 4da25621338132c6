# SPDX-License-Identifier: Apache-2.0
"""Whatever kills a worker, what it had finished is in the run folder, and what was open is shown as cut off.

Each worker writes a line to a file of its own after each span it has finished: what must be there is known without us.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.helpers.ray_program import RayPlace, wait_until
from tests.helpers.run import LENS, Done, Run

REPEATS = 20
# A way to die that costs a Ray session is tried this often.
SESSIONS = int(os.environ.get('LENS_TEST_SESSIONS') or 3)
RULES = """\
framework: mortal
rules:
- {kind: function, target: "mortal:note", group: rollout, name: note, attributes: {tag: arg.tag, number: arg.number}}
- {kind: function, target: "mortal:hold", group: rollout, name: hold, attributes: {tag: arg.tag}}
"""

pytestmark = [pytest.mark.frameworks, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def place(new_place: Callable[..., RayPlace]) -> RayPlace:
    place = new_place('mortal.py', 'drive_deaths.py').write({'rules.yaml': RULES, 'finished/.keep': ''})
    return place


def tags(place: RayPlace) -> list[str]:
    """The workers that wrote anything."""
    return sorted(path.name for path in (place.cwd / 'finished').iterdir() if path.name != '.keep')


def finished(place: RayPlace, tag: str) -> set[int]:
    """The notes of a worker that had returned; a line it was killed in does not count."""
    text = (place.cwd / 'finished' / tag).read_text()
    return {int(line) for line in text.rpartition('\n')[0].split('\n') if line}


def losses(place: RayPlace, run: Run) -> list[str]:
    """Finished spans that are missing or doubled, and open ones that are not shown as failed."""
    spans = run.spans
    found: list[str] = []
    for tag in tags(place):
        below = [s for s in spans if s.attributes.get('tag') == tag and s.name == 'note']
        notes = [s.attributes['number'] for s in below]
        lost = finished(place, tag) - {s.attributes['number'] for s in below if not s.truncated}
        found += [f'{tag}: lost {sorted(lost)} of {len(finished(place, tag))}'] if lost else []
        found += [f'{tag}: doubled'] if len(notes) != len(set(notes)) else []
        holds = [s for s in spans if s.name == 'hold' and s.attributes.get('tag') == tag]
        # Cut off, or ended by the SystemExit that Ray raises in a worker it asks to go.
        if [hold.error for hold in holds] != [True]:
            found.append(f'{tag}: {[(hold.truncated, hold.status) for hold in holds]} open')
        elif any(note.parent != holds[0].id for note in below):
            found.append(f'{tag}: a note under something else')
    return found


def whole(place: RayPlace, done: Done, run: Run) -> Run:
    """The run once all of Ray is gone, with what a launcher that ended before that had to leave behind."""
    print(done.stdout[-2000:], done.stderr[-2000:])
    wait_until(lambda: not list(place.processes('Mortal')), patience=60)
    # Ray's agents outlive a raylet or a driver that is killed; while they do, the run may yet get processes.
    place.end()
    # One that has no command line any more may take a moment to be gone: until then the replay says so.
    wait_until(lambda: place.execute(LENS, '--replay', str(run.path)).code == 0)
    return run


WAYS = ('os._exit', 'SIGKILL', 'SIGKILL by another', 'ray.kill', 'task os._exit', 'task SIGKILL')


def test_a_worker_dies_in_the_middle_of_a_span(place: RayPlace) -> None:
    traced = place.traced('drive_deaths.py', 'finished', str(REPEATS), *WAYS)
    assert 'over' in traced.done.stdout.split(), traced.done.stderr[-3000:]
    assert len(tags(place)) == REPEATS * len(WAYS)
    assert not losses(place, traced.run)


def test_ray_shuts_down_under_live_actors(place: RayPlace) -> None:
    traced = place.traced('drive_deaths.py', 'finished', str(SESSIONS), 'ray.shutdown')
    assert 'over' in traced.done.stdout.split(), traced.done.stderr[-3000:]
    assert len(tags(place)) == 2 * SESSIONS
    assert not losses(place, traced.run)


@pytest.mark.parametrize(
    ('way', 'code'),
    [
        ('driver returns', 0),
        ('driver os._exit', 0),
        ('driver SIGKILL', -signal.SIGKILL),
        ('driver SIGTERM', None),
        ('driver SIGINT', None),
        ('raylet SIGKILL', 0),
    ],
)
def test_the_driver_or_the_raylet_ends_under_live_actors(
    new_place: Callable[..., RayPlace], place: RayPlace, way: str, code: int | None
) -> None:
    if code is None:  # Ray's own handlers decide
        plain = new_place('mortal.py', 'drive_deaths.py').write({'finished/.keep': ''})
        code = plain.without('drive_deaths.py', 'finished', '1', way).code
        plain.close()
    # A session each: as many as fit, two workers in each.
    for number in range(SESSIONS):
        if number:
            place = new_place('mortal.py', 'drive_deaths.py').write({'rules.yaml': RULES, 'finished/.keep': ''})
        traced = place.traced('drive_deaths.py', 'finished', '1', way)
        assert traced.done.code == code, traced.done.stderr[-3000:]
        assert len(tags(place)) == 2
        assert not losses(place, whole(place, traced.done, traced.run))
        place.close()


def test_the_launcher_is_killed_and_a_replay_finishes_the_run(
    new_place: Callable[..., RayPlace], place: RayPlace
) -> None:
    for number in range(SESSIONS):
        if number:
            place = new_place('mortal.py', 'drive_deaths.py').write({'rules.yaml': RULES, 'finished/.keep': ''})
        run = Run(place.folder / 'run')
        with open(place.folder / 'out', 'wb') as out:
            command = place.command(run.path, 'drive_deaths.py', 'finished', '1', 'waits')
            launcher = place.start(*command, out=out)
            try:
                wait_until(lambda there=place: len(tags(there)) == 2, patience=90)
                launcher.kill()
                launcher.wait()
                wait_until(lambda there=place: b'over' in (there.folder / 'out').read_bytes(), patience=60)
            finally:
                end(launcher)
        said = Done(0, (place.folder / 'out').read_text(), '')
        assert not losses(place, whole(place, said, run))
        place.close()


def end(process: subprocess.Popen[bytes]) -> None:
    """Let nothing that a failed test left run on."""
    if process.poll() is None:
        process.kill()
        process.wait()
