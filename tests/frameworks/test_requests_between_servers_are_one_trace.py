# SPDX-License-Identifier: Apache-2.0
"""Real servers (FastAPI on uvicorn with both of its parsers, Flask) and real clients (httpx, requests, aiohttp)."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.helpers.run import Done, Place, Run, Span
from tests.helpers.venvs import python_with

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]

PROGRAMS = Path(__file__).parent / 'http_programs'
WORK = 'def train(run): return run()\ndef rollout(run): return run()\n'
RULES = """
framework: small
rules:
- {kind: function, target: "work:train", group: job, name: small.train}
- {kind: function, target: "work:rollout", group: rollout, name: small.rollout}
"""
SERVER, CLIENT = 2, 3


@pytest.fixture(scope='module')
def python() -> str:
    needed = ('fastapi', 'uvicorn', 'httptools', 'httpx', 'aiohttp', 'requests', 'flask')
    return python_with('http-both-sides', *needed)


@pytest.fixture(scope='module')
def ran(python: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Done, Run, Place]:
    """The program plainly and traced, its run, and where."""
    place = Place(tmp_path_factory.mktemp('http')).write({'work.py': WORK, 'rules.yaml': RULES})
    for program in PROGRAMS.glob('*.py'):
        shutil.copy(program, place.cwd)
    plain = place.plain(python, 'main.py')
    groups = ('--rules', 'rules.yaml', '--span-groups', 'job,rollout,http', '--no-summary')
    return plain, place.lens(*groups, python, 'main.py'), place.run, place


def named(run: Run, name: str, kind: int) -> list[Span]:
    return [span for span in run.spans if span.name == name and span.kind == kind]


def test_the_program_gets_the_same_answers(ran: tuple[Done, Done, Run, Place]) -> None:
    plain, traced, _, _ = ran
    assert plain.code == 0, plain.stderr
    assert traced.stdout == plain.stdout
    assert traced.code == 0
    assert traced.stderr.count('Traceback') == plain.stderr.count('Traceback')


def test_each_rollout_is_one_trace_through_all_servers(ran: tuple[Done, Done, Run, Place]) -> None:
    run = ran[2]
    by_id = {span.id: span for span in run.spans}
    leaves = [span for span in named(run, 'POST /run/{task}', SERVER)]
    assert len(leaves) == 2 * 202
    train = named(run, 'small.train', 1)[0]
    chains: Counter[tuple[str, ...]] = Counter()
    for leaf in leaves:
        chain: list[str] = []
        span: Span | None = leaf
        while span is not None and span.id != train.id:
            chain.append(span.name)
            assert span.trace == train.trace
            span = by_id.get(span.parent)
        assert span is not None
        chains[tuple(chain)] += 1
    assert chains == {
        ('POST /run/{task}', 'POST', 'small.rollout'): 202,
        ('POST /run/{task}', 'POST', 'POST /run/{task}', 'POST', 'small.rollout'): 202,
    }
    assert len({span.resource['process.pid'] for span in leaves}) == 2


def test_what_became_of_each(ran: tuple[Done, Done, Run, Place]) -> None:
    run = ran[2]
    servers = [span for span in run.spans if span.kind == SERVER]
    answered = Counter(
        (span.name, span.attributes.get('http.response.status_code'), span.status == 2)
        for span in servers
        if not span.name.startswith('POST')
    )
    assert answered == {
        ('GET /stream', 200, False): 1,
        ('GET /fails', 500, True): 1,
        ('GET /missing', 404, False): 1,
        ('GET', 404, False): 1,
        ('GET /part/inner/{x}', 200, False): 1,
        ('GET /hello/<name>', 200, False): 1,
        ('GET /boom', None, True): 1,  # Flask makes its answer of an error later
        ('GET', None, True): 1,  # whose process died
    }
    clients = Counter(
        (span.attributes.get('http.response.status_code'), span.status == 2)
        for span in run.spans
        if span.kind == CLIENT and span.name == 'GET' and 'http.response.status_code' in span.attributes
    )
    assert clients[404, True] == 2 and clients[500, True] == 2


def test_a_streamed_answer_ends_with_its_stream(ran: tuple[Done, Done, Run, Place]) -> None:
    _, _, run, place = ran
    (stream,) = named(run, 'GET /stream', SERVER)
    assert stream.end >= int((place.cwd / 'streamed').read_text())


def test_a_server_that_dies_leaves_its_request_cut_short_and_nothing_else(ran: tuple[Done, Done, Run, Place]) -> None:
    run = ran[2]
    cut = [span for span in run.spans if span.attributes.get('lens.truncated') and span.name != 'lens.run']
    assert [(span.name, span.kind) for span in cut] == [('GET', SERVER)]
    by_id = {span.id: span for span in run.spans}
    assert by_id[cut[0].parent].kind == CLIENT


def test_no_health_check_no_secret_no_address_of_a_resource(ran: tuple[Done, Done, Run, Place]) -> None:
    run = ran[2]
    assert not [span for span in run.spans if span.kind == SERVER and 'health' in span.name]
    written = ''.join(path.read_text() for path in Path(run.path).glob('*.jsonl'))
    assert 'a-secret' not in written and '/run/101' not in written
