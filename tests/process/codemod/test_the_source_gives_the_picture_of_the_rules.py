# SPDX-License-Identifier: Apache-2.0
"""Rules in a file and the same rules written into the source: one picture, and never two spans for one thing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from lens_auto.codemod.cli import main
from tests.helpers.ray_program import RayPlace
from tests.helpers.run import LENS, REPOSITORY, Place, Run

SHORT = ('--steps', '3', '--prompts-per-step', '4', '--group-size', '4', '--validate-every', '3', '--save-every', '2')
COMMAND = ('--span-groups', 'all', 'python', 'examples/run_grpo.py', *SHORT)
# What a run says of itself; the process is another one each time.
OWN = ('process.', 'host.', 'service.instance', 'nemo.run', 'lens.run', 'run_id', 'thread.', 'nv.dl.run.uuid')


def picture(run: Run) -> tuple[list[Any], list[Any]]:
    """The spans as a tree, with everything that is not a time or an id; and the metric points."""
    spans = run.spans
    number = {span.id: index for index, span in enumerate(spans)}
    tree = [
        (
            span.name,
            number.get(span.parent, -1),
            [number.get(target, -1) for _, target in span.links],
            span.status,
            {name: value for name, value in span.attributes.items() if not name.startswith(OWN)},
            {name: value for name, value in span.resource.items() if not name.startswith(OWN)},
        )
        for span in spans
    ]
    # The last of each series: a counter's total so far is told whenever the collector looks.
    points = {
        (point.name, *sorted(point.attributes.items())): point.value
        for point in run.points
        if not point.name.startswith(('process.', 'system.', 'hw.'))  # what the machine was at
    }
    return tree, sorted(points.items(), key=repr)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    shutil.copytree(REPOSITORY / 'examples', place.cwd / 'examples', ignore=shutil.ignore_patterns('__pycache__'))
    return place


def test_the_examples_trace_is_the_same_from_its_rules_and_from_its_source(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ruled = picture(place.record(*COMMAND))
    assert len(ruled[0]) == 30 and len(ruled[1]) == 9
    monkeypatch.chdir(place.cwd)
    assert main(['apply', '--write', 'examples']) == 0
    assert main(['check', 'examples']) == 0
    assert '35 places' in capsys.readouterr().out

    both = picture(place.record(*COMMAND))
    assert both == ruled

    (place.cwd / 'examples' / 'lens.yaml').unlink()
    alone = picture(place.record(*COMMAND, env={'OTEL_SERVICE_NAME': 'tiny_grpo'}))
    assert alone == ruled

    assert main(['revert', 'examples']) == 0
    for path in (REPOSITORY / 'examples').rglob('*.py'):
        assert (place.cwd / 'examples' / path.relative_to(REPOSITORY / 'examples')).read_bytes() == path.read_bytes()


def test_the_examples_trace_is_the_same_from_its_source_in_the_words_of_opentelemetry(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has no words for is left out: intervals, metrics, what a resource rule reads."""
    ruled = place.record(*COMMAND)
    monkeypatch.chdir(place.cwd)
    assert main(['apply', '--style', 'otel', '--write', 'examples']) == 0

    # Rules and source together: one span of each, that of the rule.
    assert picture(place.record(*COMMAND)) == picture(ruled)

    (place.cwd / 'examples' / 'lens.yaml').unlink()
    alone = place.record(*COMMAND, env={'OTEL_SERVICE_NAME': 'tiny_grpo'})
    assert _sayable(alone) == _sayable(ruled)
    assert len(_sayable(alone)) == 25


def _sayable(run: Run) -> list[Any]:
    names = {span.id: span.name for span in run.spans}
    left_out = ('rl.grpo.generate', 'lens.run')
    return [
        (
            span.name,
            names.get(span.parent, ''),
            [names.get(target, '') for _, target in span.links],
            span.status,
            {k: v for k, v in span.attributes.items() if not k.startswith((*OWN, 'otel.scope'))},
        )
        for span in run.spans
        if span.name not in left_out
    ]


@pytest.mark.frameworks
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_workers_of_ray_record_from_their_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip('ray')
    place = RayPlace(tmp_path)
    try:
        shutil.copytree(REPOSITORY / 'examples', place.cwd / 'examples', ignore=shutil.ignore_patterns('__pycache__'))
        ruled = _on_ray(place, 'ruled')
        monkeypatch.chdir(place.cwd)
        assert main(['apply', '--write', 'examples']) == 0
        assert _on_ray(place, 'both') == ruled
        (place.cwd / 'examples' / 'lens.yaml').unlink()
        assert _on_ray(place, 'alone') == ruled
    finally:
        place.close()


def _on_ray(place: RayPlace, name: str) -> list[Any]:
    """The spans by name, with their parents and attributes; which worker did what differs from run to run."""
    folder = place.folder / name
    command = (LENS, '--no-summary', '--run-dir', str(folder), '--span-groups', 'all', place.python)
    done = place.execute(*command, 'examples/run_grpo.py', '--ray', *SHORT)
    assert done.code == 0, done.stderr[-3000:]
    run = Run(folder)
    above = {span.id: span.name for span in run.spans}
    own = ('process.', 'thread.', 'ray.')
    found = [
        (span.name, above.get(span.parent, ''), {k: v for k, v in span.attributes.items() if not k.startswith(own)})
        for span in run.spans
        if not span.name.startswith('ray.')
    ]
    return sorted(found, key=repr)
