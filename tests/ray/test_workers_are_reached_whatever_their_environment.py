# SPDX-License-Identifier: Apache-2.0
"""runtime_envs, other venvs, setup hooks, clusters that were there before: as without us, and with spans."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.other_venv import other_venv
from tests.helpers.ray_cluster import Cluster
from tests.helpers.ray_program import RayPlace, Traced, answers, rules_text
from tests.helpers.run import Run

pytestmark = pytest.mark.timeout(400)

LOCAL = {'address': 'local', 'num_cpus': 2, 'include_dashboard': False}
NAMES = ('task', 'Worker.work', 'Worker.stream')
TARGETS = {name: f'reached:{name}' for name in ('phase', *NAMES)} | {'helped': 'apart:helped'}
APART = """\
import os


def helped(*args, **kwargs):
    return [*args, *sorted(kwargs.items())]


def setup():
    os.environ['SETUP_RAN'] = 'yes'
"""


def reach_place(new_place: Callable[..., RayPlace]) -> RayPlace:
    """A place with the program, its rules, and modules that the driver cannot import."""
    place = new_place('reached.py', 'drive_reached.py')
    files = {'rules.yaml': rules_text(TARGETS), 'theirs/apart.py': APART, 'package/apart/__init__.py': APART}
    # A working directory replaces the driver's own: it holds what the worker needs.
    return place.write(
        files | {'elsewhere/reached.py': (place.cwd / 'reached.py').read_text(), 'elsewhere/apart.py': APART}
    )


def compare(place: RayPlace, init: dict[str, Any], *cells: dict[str, Any], **env: str) -> Traced:
    """Run the cells both ways; what they say must be the same. Returns the traced run."""
    order = json.dumps({'init': init, 'cells': cells})
    plain = place.without('drive_reached.py', order, env=env)
    assert plain.code == 0, plain.stderr[-3000:]
    traced = place.traced('drive_reached.py', order, env=env)
    assert traced.done.code == 0, traced.done.stderr[-3000:]
    assert [a['cell'] for a in answers(plain.stdout)] == [cell['cell'] for cell in cells]
    assert answers(traced.done.stdout) == answers(plain.stdout)
    return traced


def faults(traced: Traced, cells: int, names: tuple[str, ...] = NAMES) -> list[str]:
    """What is missing or wrong of the workers' spans; the driver's spans say in which cell."""
    phases = traced.run.named('phase')
    found = [f'{len(phases)} of {cells} phases'] if len(phases) != cells else []
    for at, phase in enumerate(phases):
        below = [span for span in traced.spans if span.parent == phase.id]
        found += [f'cell {at}: no {name}' for name in names if name not in {span.name for span in below}]
        found += [f'cell {at}: {len(below)} spans for {len(names)}'] if len(below) > len(names) else []
        found += [f'{span.name} by a {span.resource.get("lens.role")}' for span in below if not _by_worker(span)]
    return found


def _by_worker(span: Any) -> bool:
    return span.resource.get('lens.role') == 'worker'


@pytest.fixture(scope='module')
def place(new_place: Callable[..., RayPlace]) -> RayPlace:
    return reach_place(new_place)


def in_theirs(place: RayPlace) -> dict[str, Any]:
    return {'env_vars': {'PYTHONPATH': str(place.cwd / 'theirs'), 'OF_THE_USER': 'kept'}}


def with_hook(place: RayPlace) -> dict[str, Any]:
    # Ray runs it before a worker has the driver's sys.path.
    return {**in_theirs(place), 'worker_process_setup_hook': 'apart.setup'}


@pytest.fixture(scope='module')
def per_call(place: RayPlace, tmp_path_factory: pytest.TempPathFactory) -> tuple[Traced, list[str]]:
    """One session, one cell for each runtime_env that a single task or actor can have."""
    python = other_venv(tmp_path_factory.mktemp('other') / 'venv', place.python)
    environments: dict[str, tuple[dict[str, Any], str]] = {
        'PYTHONPATH': (in_theirs(place), 'apart'),
        'env_vars': ({'env_vars': {'OF_THE_USER': 'kept'}}, ''),
        'py_executable': ({'py_executable': python}, ''),
        'PYTHONPATH and py_executable': ({**in_theirs(place), 'py_executable': python}, 'apart'),
    }
    cells = [
        {'cell': name, 'options': {'runtime_env': env}, 'names': ['OF_THE_USER'], 'module': module}
        for name, (env, module) in environments.items()
    ]
    return compare(place, LOCAL, *cells), list(environments)


@pytest.mark.parametrize('cell', ['PYTHONPATH', 'env_vars', 'py_executable', 'PYTHONPATH and py_executable'])
def test_a_runtime_env_of_one_call(per_call: tuple[Traced, list[str]], cell: str) -> None:
    traced, cells = per_call
    phase = traced.run.named('phase')[cells.index(cell)]
    below = [span for span in traced.spans if span.parent == phase.id]
    assert sorted(span.name for span in below if span.name != 'helped') == sorted(NAMES)
    assert all(_by_worker(span) for span in below)


def test_a_module_only_the_worker_has_is_ruled_there(per_call: tuple[Traced, list[str]]) -> None:
    """`helped`, called inside `Worker.sees`, which has no rule: it is the first span of its task."""
    traced, cells = per_call
    having = [cell for cell in cells if 'PYTHONPATH' in cell]
    phases = traced.run.named('phase')
    assert [span.parent for span in traced.run.named('helped')] == [phases[cells.index(cell)].id for cell in having]


@pytest.mark.frameworks
@pytest.mark.parametrize('kind', ['PYTHONPATH', 'working_dir', 'py_modules', 'setup hook', '100 KiB'])
def test_a_runtime_env_or_environment_of_the_whole_job(place: RayPlace, kind: str) -> None:
    environment: dict[str, Any] = {
        'PYTHONPATH': in_theirs(place),
        'working_dir': {'working_dir': str(place.cwd / 'elsewhere')},
        'py_modules': {'py_modules': [str(place.cwd / 'package' / 'apart')]},
        'setup hook': with_hook(place),
        '100 KiB': None,
    }[kind]
    env = {'OF_THE_USER': 'x' * 100 * 1024} if kind == '100 KiB' else {}
    init = {**LOCAL, **({'runtime_env': environment} if environment else {})}
    module = 'apart' if kind in ('PYTHONPATH', 'working_dir', 'py_modules') else ''
    cell = {'cell': kind, 'options': {}, 'names': ['OF_THE_USER', 'SETUP_RAN'], 'module': module}
    traced = compare(place, init, cell, **env)
    assert answers(traced.done.stdout)[0]['said'][2][1] == ('yes' if kind == 'setup hook' else '')
    assert not faults(traced, 1, (*NAMES, 'helped') if module else NAMES)


@pytest.mark.frameworks
def test_rays_own_tracing_stays_as_the_user_set_it(place: RayPlace) -> None:
    has = subprocess.run([place.python, '-c', 'import opentelemetry.sdk, ray.util.tracing'], capture_output=True)
    if has.returncode:
        pytest.skip('no opentelemetry in the venv with this ray')
    # It breaks generator methods, without us as with us: none here. Its hook runs before a worker has the driver's
    # sys.path.
    cell = {'cell': 'tracing', 'options': {}, 'names': [], 'streams': False}
    traced = compare(place, {**LOCAL, '_tracing_startup_hook': 'reached:tracing'}, cell, PYTHONPATH=str(place.cwd))
    assert not faults(traced, 1, NAMES[:2])


@pytest.fixture(scope='module')
def cluster(place: RayPlace) -> Iterator[Cluster]:
    with Cluster(place) as started:
        yield started


CELL = {'cell': 'plain call', 'options': {}, 'names': ['OF_THE_USER']}


def test_a_cluster_that_was_there_before(place: RayPlace, cluster: Cluster) -> None:
    assert not faults(compare(place, {'address': cluster.address}, CELL), 1)


@pytest.mark.frameworks
@pytest.mark.parametrize('kind', ['auto', 'own env_vars', 'PYTHONPATH of one call', 'setup hook', '100 KiB'])
def test_a_cluster_that_was_there_before_and_more(place: RayPlace, cluster: Cluster, kind: str) -> None:
    job: dict[str, Any] = {
        'own env_vars': {'env_vars': {'OF_THE_USER': 'kept'}},
        'setup hook': with_hook(place),
        '100 KiB': {'env_vars': {'OF_THE_USER': 'x' * 100 * 1024}},
    }.get(kind, {})
    init = {'address': 'auto' if kind == 'auto' else cluster.address, **({'runtime_env': job} if job else {})}
    options = {'runtime_env': in_theirs(place)} if kind.startswith('PYTHONPATH') else {}
    cell = {'cell': kind, 'options': options, 'names': ['OF_THE_USER', 'SETUP_RAN']}
    traced = compare(place, init, cell, RAY_ADDRESS=cluster.address)
    if kind == '100 KiB':  # more than a worker's environment can hold: not reached, and the program does not notice
        assert len(traced.run.named('phase')) == 1
    else:
        assert not faults(traced, 1)


def test_two_drivers_of_one_cluster_keep_their_runs_apart(place: RayPlace, cluster: Cluster) -> None:
    """A worker is of one job; what an earlier driver brought is not the next one's."""
    order = json.dumps({'init': {'address': cluster.address}, 'cells': [CELL]})
    plain = place.without('drive_reached.py', order)
    runs = [place.traced('drive_reached.py', order) for _ in range(2)]
    assert {run.done.stdout for run in runs} == {plain.stdout}
    assert [faults(run, 1) for run in runs] == [[], []]
    assert Path(runs[0].run.path) != Path(runs[1].run.path)


@pytest.mark.frameworks
@pytest.mark.parametrize('there_before', [False, True], ids=['local', 'there before'])
def test_a_users_own_runtime_env_hook_has_its_say(place: RayPlace, cluster: Cluster, there_before: bool) -> None:
    init = {'address': cluster.address} if there_before else LOCAL
    cell = {'cell': 'hook', 'options': {}, 'names': ['OF_THE_USER']}
    traced = compare(place, init, cell, RAY_RUNTIME_ENV_HOOK='reached.hook')
    assert answers(traced.done.stdout)[0]['said'][2][0] == 'by the hook'
    assert not faults(traced, 1)


@pytest.mark.frameworks
def test_packages_that_ray_installs_for_a_worker(new_place: Callable[..., RayPlace], tmp_path: Path) -> None:
    """`pip` makes a venv on the machine; what pip and virtualenv run meanwhile is no worker."""
    _installed(tmp_path, 'tomli')
    place = reach_place(new_place)
    place.python = other_venv(tmp_path / 'other', place.python)
    # Ray asks for virtualenv, in the venv that it runs in itself.
    at = next((tmp_path / 'other' / 'lib').glob('python3*')) / 'site-packages'
    pip = [sys.executable, '-m', 'pip', '--disable-pip-version-check', '--no-input', '-q', 'install']
    done = subprocess.run([*pip, '--target', str(at), 'virtualenv'], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f'pip cannot install virtualenv here: {done.stderr.strip().splitlines()[-1]}')
    options = {'runtime_env': {'pip': ['tomli']}}
    traced = compare(place, LOCAL, {'cell': 'pip', 'options': options, 'names': ['OF_THE_USER']})
    assert not faults(traced, 1)
    assert {span.resource.get('lens.role') for span in traced.spans} == {'launcher', 'driver', 'worker'}


@pytest.mark.frameworks
@pytest.mark.parametrize('way', ['py_executable', 'hook'])
def test_workers_that_uv_starts(place: RayPlace, tmp_path: Path, way: str) -> None:
    uv = str(_installed(tmp_path, 'uv') / 'bin' / 'uv')
    run = [uv, 'run', '--no-project', '--offline', '--python', place.python]
    env = {'UV_CACHE_DIR': str(tmp_path / 'cache')}
    if way == 'py_executable':
        options = {'runtime_env': {'py_executable': ' '.join(run)}}
        assert not faults(compare(place, LOCAL, {'cell': way, 'options': options}, **env), 1)
        return
    # Ray's hook sees that the driver is a child of `uv run`, and has the workers started in the same way.
    hook = 'ray._private.runtime_env.uv_runtime_env_hook'
    if subprocess.run([place.python, '-c', f'import {hook}'], capture_output=True).returncode:
        pytest.skip('this ray has no hook for uv')
    env['RAY_RUNTIME_ENV_HOOK'] = f'{hook}.hook'
    order = json.dumps({'init': LOCAL, 'cells': [{'cell': way, 'options': {}}]})
    plain = place.execute(*run, 'drive_reached.py', order, env=env)
    assert plain.code == 0, plain.stderr[-3000:]
    run_dir = tmp_path / 'run'
    command = place.command(run_dir, 'drive_reached.py', order)
    at = command.index(place.python)
    done = place.execute(*command[:at], *run, *command[at + 1 :], env=env)
    assert done.code == 0, done.stderr[-3000:]
    assert answers(done.stdout) == answers(plain.stdout)
    assert not faults(Traced(done, Run(run_dir)), 1)


def _installed(folder: Path, package: str) -> Path:
    """A venv with one package from the index, or a test that is skipped."""
    venv = folder / 'installed'
    subprocess.run([sys.executable, '-m', 'venv', str(venv)], check=True)
    pip = [str(venv / 'bin' / 'python'), '-m', 'pip', '--disable-pip-version-check', '--no-input', '-q', 'install']
    done = subprocess.run([*pip, package], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f'pip cannot install {package} here: {done.stderr.strip().splitlines()[-1]}')
    return venv
