# SPDX-License-Identifier: Apache-2.0
"""An exception planted in what changes source and runs scripts: the program is as without us, and it is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.test_a_planted_fault_stays_ours import TOKEN, Copy
from tests.helpers.program import Outcome, Program, function, place, python

FILES = {
    'train.py': """
    import sys
    import work

    def step(n):
        return n + 1

    def main():
        for n in range(3):
            print(step(n), work.total(n), sys.path[0], __file__, __spec__)
        return 4

    sys.exit(main())
    """,
    'work.py': """
    def total(n):
        done = 0
        for each in range(n):
            done += each
        return done
    """,
}
RULES = [
    place('loop', 'a', 'train.py:main', 'for $n in range(3):', attributes={'n': ('match', 'n')}),
    place('loop', 'b', 'work:total', 'for $n in $_:'),
    function('c', 'train.py:step'),
]
# File, function, where the fault is said, and what is recorded all the same.
PLANTS = [
    ('sitecustomize/sitecustomize.py', '_watch', 'processes.tsv', {'b'}),
    ('sitecustomize/sitecustomize.py', '_ends', 'processes.tsv', {'b'}),
    ('hook/sources.py', 'Sources._of_main', 'source', {'b'}),
    ('hook/sources.py', 'Sources._code', 'source', set()),
    ('hook/sources.py', 'Sources.bound', 'patch', {'a', 'b'}),
    ('hook/bytecode.py', 'entry', 'source', set()),
    ('hook/bytecode.py', 'fetch', 'source', set()),
    ('hook/bytecode.py', 'store', 'source', set()),
    ('hook/rewritten.py', 'make', 'source', set()),
    ('hook/script.py', 'importer', 'script', {'b'}),
    ('rewrite/edit.py', 'rewrite', 'source', set()),
    ('rewrite/places.py', 'find', 'source', set()),
    ('rewrite/bound.py', 'mark', 'source', {'b'}),
    ('wrap/place_site.py', 'PlaceSite.__init__', 'place', {'c'}),
    ('wrap/place_site.py', 'PlaceSite.open', 'enter', {'c'}),
]


class SourceCopy(Copy):
    def run(self, program: Program, executable: str) -> Outcome:
        path = f'{self.folder / "sitecustomize"}:{program.app}'
        home = str(self.folder / 'lens_auto')
        return program.traced(RULES, 'train.py', python=executable, PYTHONPATH=path, LENS_HOME=home)


@pytest.mark.parametrize(('file', 'name', 'where', 'recorded'), PLANTS, ids=lambda value: str(value))
def test_the_program_is_as_without_us(tmp_path: Path, file: str, name: str, where: str, recorded: set[str]) -> None:
    program = Program(tmp_path / 'program', FILES)
    plain = program.plain('train.py', python=python('3.12'))
    traced = SourceCopy(tmp_path, file, name).run(program, python('3.12'))
    assert traced.visible() == plain.visible()
    assert set(traced.journal.names()) == recorded
    told = [f'{report["where"]} {report["type"]}' for report in traced.journal.reports('fault')]
    told += [f'processes.tsv {row[5]}' for row in traced.processes if row[5]]
    assert any(line.startswith(where) for line in told), told
    assert TOKEN not in str(traced.journal) + str(traced.processes)
