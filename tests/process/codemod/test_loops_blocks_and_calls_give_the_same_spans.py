# SPDX-License-Identifier: Apache-2.0
"""Rules that find their places by a pattern: applied at import, and written into the source, with one picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from lens_auto.codemod.cli import main
from tests.helpers.run import Place, Run

RULES = """
framework: mine
rules:
- kind: loop
  target: mine.loop:train
  match: "for $i in range($$$):"
  group: step
  root: true
  name: rl.step
  attributes: {rl.iteration: "match.i + 1"}
- kind: loop
  target: mine.loop:train
  match: "while $x:"
  group: wait
  name: rl.poll
- kind: loop
  target: mine.loop:Short.run
  match: "for $x in $y:"
  group: wait
  name: rl.short
- kind: block
  target: mine.loop:train
  match: "with open($path):"
  group: data_processing
  name: rl.read
- kind: call
  target: mine.loop:train
  match: "fetch($X)"
  group: wait
  name: rl.fetch
  attributes: {rl.what: match.X}
- kind: function
  target: mine.loop:helper
  group: rollout
  name: rl.helper
  attributes: {n: arg.n, twice: result}
- kind: function
  target: mine.loop:numbers
  group: rollout
  name: "rl.{caller.function}.numbers"
- kind: function
  target: mine.loop:Short.failing
  group: rollout
  apply: rewrite
  name: rl.failing
"""
LOOP = '''\
import os


def fetch(x):
    return x


def helper(n):
    return 2 * n


def numbers():
    yield from range(3)


class Short:
    def run(self):
        for x in (1, 2): helper(x)

    def failing(self, n):
        raise ValueError(n)


def train():
    total = 0
    for step in range(3):
        # a comment
        if step == 2:
            break
        with open(os.devnull):
            total += fetch(step)
        text = """a
b"""
        total += len(text) + helper(1)
        while total < 20:
            total += 5
            continue
    else:
        print('never')
    for number in numbers():
        total += number
    short = Short()
    short.run()
    try:
        short.failing(3)
    except ValueError as error:
        total += error.args[0]
    return total
'''
FILES = {
    'lens.yaml': RULES,
    'mine/__init__.py': '',
    'mine/loop.py': LOOP,
    'main.py': 'from mine.loop import train\nprint(train())\n',
}
TREE = """\
lens.run
  ~ rl.step rl.iteration=1
    rl.read
      rl.fetch rl.what=0
    rl.helper n=1 twice=2
    rl.poll
    rl.poll
    rl.poll
  ~ rl.step rl.iteration=2
    rl.read
      rl.fetch rl.what=1
    rl.helper n=1 twice=2
  ~ rl.step rl.iteration=3
  rl.train.numbers
  rl.short
    rl.helper n=1 twice=2
  rl.short
    rl.helper n=2 twice=4
  rl.failing!"""
SHOWN = ('rl.iteration', 'rl.what', 'n', 'twice')
COMMAND = ('--span-groups', 'all', 'python', 'main.py')


def test_patterns_give_one_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path).write(FILES)
    monkeypatch.chdir(place.cwd)
    assert main(['apply', '--write', '.']) == 0
    assert '8 places' in capsys.readouterr().out
    (place.cwd / 'lens.yaml').rename(place.cwd / 'kept.yaml')
    assert place.record(*COMMAND).tree(*SHOWN) == TREE
    (place.cwd / 'kept.yaml').rename(place.cwd / 'lens.yaml')
    both = place.record(*COMMAND)
    assert both.tree(*SHOWN) == TREE
    assert not missing(both)
    assert main(['revert', '.']) == 0
    assert (place.cwd / 'mine/loop.py').read_text() == LOOP
    assert place.record(*COMMAND).tree(*SHOWN) == TREE


def test_written_in_the_words_of_opentelemetry_there_is_still_one_span_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path).write(FILES)
    monkeypatch.chdir(place.cwd)
    assert main(['apply', '--style', 'otel', '--write', '.']) == 0
    assert (place.cwd / 'mine/loop.py').read_text().count('_lens_tracer.start_as_current_span(') == 7
    both = place.record(*COMMAND)
    assert both.tree(*SHOWN) == TREE
    assert not missing(both)


def missing(run: Run) -> list[str]:
    """What the rules did not find in the source; not what that says already."""
    told = [reason for rule in run.facts['rules'] for reason in rule['missing']]
    return [reason for reason in told if not reason.endswith('says it already')]
