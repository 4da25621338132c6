# SPDX-License-Identifier: Apache-2.0
"""`lens-rules check` and `show` on rules that find their places in the source."""

from pathlib import Path
from textwrap import dedent

import pytest

from lens_auto.rules import cli

SCRIPT = """\
import trainer


def step(i):
    return i


def stream():
    yield 1


def main():
    for rollout_id in range(3):
        with trainer.time("generation"):
            step(rollout_id)
        while rollout_id:
            rollout_id -= 1
    return trainer.get(7)


main()
"""
TRAINER = """\
class Trainer:
    def fit(self):
        for batch in self.data:
            self.one(batch)
        for batch in self.more:
            self.one(batch)
"""


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'train.py').write_text(SCRIPT)
    (tmp_path / 'trainer.py').write_text(TRAINER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def rules(*lines: str) -> None:
    Path('r.yaml').write_text(
        'framework: t\nrules:\n' + ''.join(f'- {{{line}, group: step, name: rl.x}}\n' for line in lines)
    )


CASES = {
    'a loop of a script': ('kind: loop, target: "train.py:main", match: "for $i in $_:"', 'matched', 'line 13', 0),
    'two loops of a module': (
        'kind: loop, target: "trainer:Trainer.fit", match: "for batch in $_:", expect: 2',
        'matched',
        'lines 3, 5',
        0,
    ),
    'one loop too many': (
        'kind: loop, target: "trainer:Trainer.fit", match: "for batch in $_:"',
        'ambiguous',
        'is there 2 times, 1 is expected',
        1,
    ),
    'a block': ('kind: block, target: "train.py:main", match: "with trainer.time($x):"', 'matched', 'line 14', 0),
    'a call': ('kind: call, target: "train.py:main", match: trainer.get($x)', 'matched', 'line 18', 0),
    'a call at another level': (
        'kind: call, target: train.py, match: trainer.get($x)',
        'missing',
        'it is in main (line 18)',
        1,
    ),
    'a function of another name': (
        'kind: loop, target: "train.py:mains", match: "for $i in $_:"',
        'missing',
        'nearest: main (line 12)',
        1,
    ),
    'a script that is not there': (
        'kind: loop, target: run.py, match: "for $i in $_:"',
        'missing',
        'no such script',
        1,
    ),
    'a package that is not there': ('kind: loop, target: gone, match: "for $i in $_:"', 'not installed', 'gone', 0),
    'the second of two targets': (
        'kind: loop, target: ["trainer:Old.fit", "train.py:main"], match: "while $_:"',
        'matched',
        'line 16',
        0,
    ),
    'a function that is rewritten': ('kind: function, target: "train.py:step", apply: rewrite', 'matched', 'line 4', 0),
    'a generator that cannot be': (
        'kind: function, target: "train.py:stream", apply: rewrite',
        'matched',
        'wrapped, not rewritten: line 8: stream is a generator',
        0,
    ),
}


@pytest.mark.parametrize('case', CASES)
def test_a_place_is_found_or_missed_with_the_nearest(capsys: pytest.CaptureFixture[str], case: str) -> None:
    rule, state, detail, code = CASES[case]
    rules(rule)
    assert cli.main(['check', 'r.yaml']) == code
    row = capsys.readouterr().out.splitlines()[2]
    assert f'  {state}  ' in row and detail in row


def test_show_marks_what_spans_are_around(capsys: pytest.CaptureFixture[str]) -> None:
    rules(
        'kind: loop, target: "train.py:main", match: "for $i in $_:"',
        'kind: block, target: "train.py:main", match: "with $_:"',
        'kind: function, target: "train.py:step"',
        'kind: loop, target: "train.py:main", match: "for $i in gone:"',
    )
    assert cli.main(['show', '--rules', 'r.yaml', 'train.py']) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1].startswith('# not applied: loop rl.x (r.yaml:6): `for $i in gone:` in main is not there')
    assert '\n'.join(shown[5:9] + shown[14:22]) == dedent("""\
                # function rl.x, wrapped (r.yaml:5)
         4  |   def step(i):
         5  |       return i
         6
        12      def main():
        13          for rollout_id in range(3):
                        # loop rl.x (r.yaml:3)
                        # block rl.x (r.yaml:4)
        14  | |         with trainer.time("generation"):
        15  | |             step(rollout_id)
        16  |           while rollout_id:
        17  |               rollout_id -= 1""")


def test_show_prints_the_code_that_runs(capsys: pytest.CaptureFixture[str]) -> None:
    rules('kind: loop, target: "trainer:Trainer.fit", match: "for batch in self.more:"')
    assert cli.main(['show', '--rules', 'r.yaml', '--code', 'trainer']) == 0
    shown = capsys.readouterr().out
    compile(shown, 'shown', 'exec')
    assert shown.count('_lens_place') == 1
    before = shown.partition('_lens_place')[0]
    assert 'self.more' in before and before.count('self.one') == 1


def test_show_says_what_it_cannot_read(capsys: pytest.CaptureFixture[str]) -> None:
    rules('kind: loop, target: "train.py:main", match: "for $i in $_:"')
    Path('broken.py').write_text('def f(:\n')
    for name in ('broken.py', 'nowhere.py', 'sys'):
        assert cli.main(['show', '--rules', 'r.yaml', name]) == 2
        assert name in capsys.readouterr().err
