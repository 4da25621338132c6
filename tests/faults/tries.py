# SPDX-License-Identifier: Apache-2.0
"""Runs one traced program many times, each with a spool of its own, and reads what is left of each.

A program says on stdout, in one write a line, what it has finished; that is what the journal is held to. The tries of a
test run a few at a time: twenty one after the other would mostly wait for interpreters to start.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.helpers.journal import Journal, Span, journal
from tests.helpers.program import Program, function

TRIES = 20
TOGETHER = 4
PATIENCE = 60.0

# Functions the rules name: `task` reads its argument, `outer` runs whatever it is given inside a span.
WORK = """
    def task(n):
        return n

    def outer(body, *arguments):
        return body(*arguments)
"""
RULES = (
    function('a', 'work:task', name='task', attributes={'n': ('arg', 'n')}),
    function('b', 'work:outer', name='outer'),
)


@dataclass
class Try:
    """One run: how it ended, what it said, what it journalled."""

    code: int
    said: list[str]
    stderr: str
    journal: Journal
    spool: Path

    @cached_property
    def spans(self) -> list[Span]:
        return self.journal.spans

    @cached_property
    def tasks(self) -> list[int]:
        """Arguments of the finished tasks, in the order of their spans."""
        return [span.attributes['n'] for span in self.spans if span.name == 'task' and span.ended]

    @property
    def numbers(self) -> list[int]:
        """What the program said it has finished; a line it was killed in does not count."""
        return [int(line) for line in self.said if line.isdigit()]

    def ids_are_unique(self) -> bool:
        """No two spans of the run, in whatever process, share an id: each has one start and one end at most."""
        for kind in (1, 2):
            ids = [record[1] for record in self.journal.records if record[0] == kind]
            if len(ids) != len(set(ids)):
                return False
        return True


class Tries:
    """A program to run many times.

    Args:
        folder: An empty folder of the test.
        main: Source of `main.py`.
        rules: Compiled rules, when it needs others.
    """

    def __init__(self, folder: Path, main: str, rules: Iterable[dict[str, Any]] = RULES) -> None:
        self.program = Program(folder, {'work.py': WORK, 'main.py': main})
        self.environ = self.program.environment(rules)
        self.folder = folder

    def run(
        self,
        python: str,
        count: int = TRIES,
        during: Callable[[subprocess.Popen[bytes], random.Random], None] | None = None,
        inside: Sequence[str] = (),
        **environ: str,
    ) -> list[Try]:
        """Run it `count` times.

        Args:
            python: The interpreter.
            count: How often.
            during: Called once the program has said something, with its process and a random stream of the try.
            inside: A command that takes the command to run as its last arguments.
            **environ: More variables.
        """

        def one(number: int) -> Try:
            spool = Path(tempfile.mkdtemp(prefix='spool-', dir=self.folder))
            env = {k: v for k, v in os.environ.items() if not k.startswith(('LENS_', 'PYTHON', 'COV_'))}
            env |= {**self.environ, 'LENS_SPOOL': str(spool), **environ}
            with open(spool / 'stdout', 'w+b') as out, open(spool / 'stderr', 'w+b') as err:
                child = subprocess.Popen(
                    [*inside, python, 'main.py'], stdout=out, stderr=err, env=env, cwd=self.program.app
                )
                try:
                    if during is not None:
                        while child.poll() is None and not os.fstat(out.fileno()).st_size:
                            time.sleep(0.002)
                        during(child, random.Random(number))
                    code = child.wait(PATIENCE)
                finally:
                    if child.poll() is None:
                        child.kill()
                        child.wait()
                out.seek(0)
                err.seek(0)
                whole = out.read().decode().rpartition('\n')[0]
                return Try(code, whole.split('\n'), err.read().decode(), journal(spool), spool)

        with ThreadPoolExecutor(TOGETHER) as pool:
            return list(pool.map(one, range(count)))
