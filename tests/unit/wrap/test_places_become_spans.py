# SPDX-License-Identifier: Apache-2.0
"""Rewritten source as it runs: which spans there are, what is in which, and what they know."""

from __future__ import annotations

import asyncio
import builtins
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

from lens_auto.record import format as form
from lens_auto.record.span import current
from lens_auto.rewrite.edit import rewrite
from lens_auto.rewrite.pattern import parse
from lens_auto.rewrite.places import Wanted
from lens_auto.wrap.figures import Figures
from lens_auto.wrap.place_site import PlaceSite
from tests.helpers.place_recording import Recording, rule


class Run:
    """Rewrites a module, with a rule for each thing it wants, and runs it."""

    def __init__(self) -> None:
        self.recording = Recording()
        self.rules: dict[str, dict[str, Any]] = {}
        self.figures: dict[str, Figures] = {}
        recorder, faults = self.recording.recorder, self.recording.runtime._faults
        self.recording.runtime.places.make = lambda key: PlaceSite(
            self.rules[key.rule], key, {}, self.figures[key.rule], recorder, faults
        )

    def __call__(self, source: str, *wanted: tuple[str, str, str], **fields: Any) -> dict[str, Any]:
        """Run a source; `wanted` are (kind, scope, pattern), and the spans of each are named by its kind."""
        rules: list[Wanted] = []
        for at, (kind, scope, text) in enumerate(wanted):
            key = f'{kind}{at}'
            self.rules[key] = rule(key, kind, **fields)
            self.figures[key] = Figures(fields.get('budget'))
            rules.append(Wanted(key, kind, scope, parse(kind, text) if text else None, (1, None)))
        done = rewrite(textwrap.dedent(source).encode(), 'program.py', rules)
        assert [found.problem for found in done.found] == [''] * len(rules)
        namespace: dict[str, Any] = {'__name__': 'program', 'seen': self.seen}
        exec(done.code, namespace)
        return namespace

    def seen(self) -> list[str]:
        """Names of the spans that are open here, outermost first."""
        names: list[str] = []
        span = current.get()
        while span is not None:
            names.insert(0, span.name)
            span = span.up
        return names

    @property
    def spans(self) -> list[tuple[str, dict[str, Any]]]:
        """The spans that have ended: name and attributes."""
        told: dict[bytes, dict[str, Any]] = {}
        found: list[tuple[str, dict[str, Any]]] = []
        for record in self.recording.journal.records:
            if record[0] == form.OPENED:
                told[record[1]] = record[7] or {}
            elif record[0] == form.ENDED:
                found.append((record[6], {**told.get(record[1], {}), **(record[9] or {})}))
        return found

    @property
    def errors(self) -> list[bool]:
        """Of each span that has ended, whether it did with an error."""
        return [record[8] == form.STATUS_ERROR for record in self.recording.journal.records if record[0] == form.ENDED]


@pytest.fixture
def run() -> Iterator[Run]:
    made = Run()
    yield made
    made.recording.runtime.remove()
    assert current.get() is None


LOOP = ('loop', '', 'for $i in $items:')


def test_each_iteration_is_a_span_and_else_is_in_none(run: Run) -> None:
    source = """
        found = []
        for i in range(3):
            found.append(seen())
            if i == 1: continue
        else:
            found.append(seen())
    """
    assert run(source, LOOP)['found'] == [['loop'], ['loop'], ['loop'], []]
    assert [name for name, _ in run.spans] == ['loop'] * 3


def test_captures_are_read_where_the_span_opens_and_never_evaluated(run: Run) -> None:
    attributes = {'i': ('+', ('match', 'i'), ('c', 1)), 'items': ('match', 'items'), 'absent': ('match', 'n')}
    source = """
        def loop():
            n = 1
            for i in range(n, 2 + n):
                pass
        loop()
    """
    run(source, ('loop', 'loop', 'for $i in $items:'), attributes=attributes)
    assert run.spans == [('loop', {'i': i, 'items': 'range(n, 2 + n)'}) for i in (2, 3)]


def test_constants_keep_their_type_and_name_a_span(run: Run) -> None:
    source = """
        import contextlib
        with contextlib.nullcontext(7), contextlib.nullcontext('step|%'): pass
    """
    name = ('fmt', (('c', 'rl.'), ('match', 'label')))
    pattern = ('block', '', 'with $_($n), contextlib.nullcontext($label):')
    run(source, pattern, name=name, attributes={'n': ('match', 'n')})
    assert run.spans == [('rl.step|%', {'n': 7})]


def test_a_block_is_inside_its_span_from_before_it_is_entered(run: Run) -> None:
    source = """
        found = []
        class Block:
            def __enter__(self): found.append(seen())
            def __exit__(self, *error): found.append(seen()); return True
        with Block() as b:
            found.append(seen())
            raise ValueError
        found.append(seen())
    """
    assert run(source, ('block', '', 'with Block():'))['found'] == [['block'], ['block'], ['block'], []]
    assert run.errors == [False]  # what the block swallows never leaves it


def test_a_call_begins_when_its_arguments_are_there(run: Run) -> None:
    source = """
        def outer(x, *rest, k=None): return [x, seen()]
        found = outer(seen(), *[seen()], k=seen())
    """
    found = run(source, ('call', '', 'outer($$$)'), attributes={'n': ('call', 'len', (('result',),))})['found']
    assert found == [[], ['call']]
    assert run.spans == [('call', {'n': 2})]


def test_the_span_of_an_awaited_call_covers_the_await(run: Run) -> None:
    source = """
        import asyncio
        found = []
        async def work():
            found.append(seen())
            await asyncio.sleep(0)
            found.append(seen())
            raise KeyError
        async def main():
            try:
                await work()
            except KeyError:
                found.append(seen())
    """
    namespace = run(source, ('call', 'main', 'work()'))
    asyncio.run(namespace['main']())
    assert namespace['found'] == [['call'], ['call'], []]
    assert run.errors == [True]


def test_a_generator_is_out_of_its_spans_while_it_is_suspended(run: Run) -> None:
    source = """
        import contextlib
        found = []
        def numbers():
            for i in range(2):
                with contextlib.nullcontext():
                    found.append(seen())
                    yield seen()
                    found.append(seen())
                    yield from iter([seen(), seen()])
        one, two = numbers(), numbers()
        for a, b in zip(one, two):
            found.append(seen())
    """
    rules = [('loop', 'numbers', 'for $i in $$$:'), ('block', 'numbers', 'with $$$:')]
    inside = [seen for seen in run(source, *rules)['found'] if seen]
    assert inside == [['loop', 'block']] * 8
    assert [seen for seen in run(source, *rules)['found'] if not seen] == [[]] * 6


def test_what_is_current_around_a_generator_is_current_again_whoever_resumes_it(run: Run) -> None:
    source = """
        found = []
        def numbers():
            while True:
                yield
                found.append(seen())
                return
        def first(g): next(g)
        def second(g):
            for _ in g: pass
            found.append(seen())
        g = numbers()
        first(g)
        second(g)
        found.append(seen())
    """
    rules = [('loop', 'numbers', 'while $$$:'), ('call', '', 'first($$$)'), ('call', '', 'second($$$)')]
    assert run(source, *rules)['found'] == [['call', 'loop'], ['call'], []]


def test_a_context_manager_s_generator_keeps_its_span_for_the_with_block(run: Run) -> None:
    source = """
        import contextlib
        @contextlib.contextmanager
        def held():
            with contextlib.nullcontext():
                yield
        with held():
            found = seen()
    """
    assert run(source, ('block', 'held', 'with $$$:'))['found'] == ['block']


def test_loops_of_one_rule_inside_one_another_are_a_span_each(run: Run) -> None:
    source = """
        for i in range(1):
            for j in range(2):
                found = seen()
    """
    assert run(source, LOOP)['found'] == ['loop', 'loop']
    assert len(run.spans) == 3


def test_a_function_s_body_knows_its_arguments(run: Run) -> None:
    source = """
        def step(self, n, *rest, k=3):
            "Doc."
            return seen(), [n for _ in rest], lambda: n
        found = step(0, 7, 8)[0]
    """
    attributes = {'n': ('arg', 'n'), 'k': ('arg', 'k'), 'rest': ('call', 'len', (('arg', 'rest'),)), 's': ('self',)}
    namespace = run(source, ('function', 'step', ''), attributes=attributes)
    assert namespace['found'] == ['function']
    assert namespace['step'].__doc__ == 'Doc.'
    assert run.spans == [('function', {'n': 7, 'k': 3, 'rest': 1, 's': 0})]


def test_a_budget_ends_the_spans_and_the_frames(run: Run) -> None:
    source = """
        import sys
        def depth():
            frame, count = sys._getframe(), 0
            while frame is not None: frame, count = frame.f_back, count + 1
            return count
        found = [depth() for _ in range(4)]
    """
    found = run(source, ('call', '', 'depth()'), budget=2)['found']
    assert found[0] == found[1] == found[2] + 1 == found[3] + 1
    assert len(run.spans) == 2
    assert run.figures['call0'].row()[:2] == [4, 2]
    assert run.figures['call0'].row()[4] == 2


def test_a_fault_of_ours_leaves_the_program_alone_and_is_told_once(run: Run) -> None:
    def fails(key: object) -> None:
        raise ZeroDivisionError

    run.recording.runtime.places.make = fails
    source = """
        found = 0
        for i in range(3):
            found += len([i])
    """
    assert run(source, LOOP, ('call', '', 'len($_)'))['found'] == 3
    assert run.spans == []
    assert len(run.recording.faults) == 2


def test_nothing_is_left_among_the_builtins(run: Run) -> None:
    names = set(vars(builtins))
    # A program may go through the classes there are, to pickle or to list them.
    assert not [name for name, value in vars(builtins).items() if name.startswith('_lens') and isinstance(value, type)]
    run.recording.runtime.remove()
    assert {name for name in names if name.startswith('_lens')} == names - set(vars(builtins))
    assert run('found = [len("a") for _ in range(2)]', ('call', '', 'len($_)'))['found'] == [1, 1]
    assert run.spans == []
