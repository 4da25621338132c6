# SPDX-License-Identifier: Apache-2.0
"""A fixed part of `make torture`: thirty modules of the standard library, and three of CPython's own test suites."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.fidelity import torture

STANDARD = Path(sysconfig.get_path('stdlib'))
MODULES = (
    *('abc', 'asyncio/queues', 'asyncio/tasks', 'bdb', 'bisect', 'calendar'),
    *('cmd', 'codeop', 'concurrent/futures/_base', 'contextlib', 'copy', 'csv'),
    *('dataclasses', 'enum', 'filecmp', 'fnmatch', 'fractions', 'functools'),
    *('glob', 'heapq', 'json/decoder', 'linecache', 'operator', 'pprint'),
    *('queue', 'random', 'selectors', 'shelve', 'textwrap', 'weakref'),
)


@pytest.mark.slow
def test_thirty_modules_differ_in_nothing_but_what_is_ours() -> None:
    assert len(MODULES) == 30
    paths = [STANDARD / f'{name}.py' for name in MODULES]

    looked = [torture.compare(path) for path in paths]

    assert [each for each in looked if each.wrong or each.left_out] == []
    assert sum(each.places for each in looked) > 4000


@pytest.mark.slow
@pytest.mark.parametrize('suite', ['test_with', 'test_contextlib', 'test_generators'])
def test_a_suite_of_cpython_comes_out_the_same_rewritten(suite: str) -> None:
    if not (STANDARD / 'test' / f'{suite}.py').exists():
        pytest.skip(f'this Python has no {suite}')
    done = subprocess.run(
        [sys.executable, str(Path(torture.__file__)), 'suites', suite], capture_output=True, text=True, timeout=170
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith(' spans, as plain\n')


@pytest.mark.slow
def test_a_suite_that_tells_nothing_has_not_passed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (STANDARD / 'test' / 'test_bisect.py').exists():
        pytest.skip('this Python has no test_bisect')
    assert not torture.suites(['test_of_this_name_there_is_none'])
    assert 'not loaded: unittest.loader._FailedTest' in capsys.readouterr().out

    monkeypatch.setattr(torture, 'STATEMENTS', ())
    assert not torture.suites(['test_bisect'])
    assert 'no span was recorded: nothing was rewritten' in capsys.readouterr().out
    monkeypatch.undo()

    assert torture.suites(['test_bisect'])
    planted = torture._RUN.replace(
        'recording = Recording()', "recording = Recording(); recording.faults.append('planted')"
    )
    monkeypatch.setattr(torture, '_RUN', planted)
    assert not torture.suites(['test_bisect'])
    assert "['a fault of ours: planted']" in capsys.readouterr().out
