# SPDX-License-Identifier: Apache-2.0
"""Properties and `__getattr__` run for an attribute of ours: what they call passes through, and comes to an end."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.program import Program, every_python, function, python

MODULE = """
    calls = []

    class Proxy:
        def __init__(self, target):
            self._target = target
        def __getattr__(self, name):
            calls.append(name)
            return getattr(self._target, name)

    class Model:
        @property
        def size(self):
            calls.append('size')
            return work(self)

    def work(model):
        return 7

    def deep(n):
        return deep(n - 1) if n else 0
"""
NAME = ('.', ('self',), 'name')


@every_python
def test_a_rule_on_getattr_that_reads_through_getattr(tmp_path: Path, version: str) -> None:
    main = """
        import m
        class Target: name = 'n'
        for _ in range(20): proxy = m.Proxy(Target())
        print(len(m.calls) < 2000)
        print(proxy.name)
    """
    rules = [
        function('i', 'm:Proxy.__init__', attributes={'name': NAME}),
        function('g', 'm:Proxy.__getattr__', attributes={'name': NAME}),
    ]
    traced = Program(tmp_path, {'m.py': MODULE, 'main.py': main}).traced(rules, python=python(version))
    # Read once only: before `__init__` has run, this `__getattr__` calls itself without end.
    assert (traced.stdout, traced.stderr) == ('True\nn\n', '')
    assert traced.journal.names() == ['i'] * 20 + ['g']
    assert [span.attributes.get('name') for span in traced.journal.spans][-1] == 'n'


def test_a_property_that_calls_the_recorded_function(tmp_path: Path) -> None:
    main = 'import m\nfor _ in range(3): m.work(m.Model())\nprint(len(m.calls))'
    rule = function('w', 'm:work', attributes={'size': ('.', ('arg', 'model'), 'size')})
    traced = Program(tmp_path, {'m.py': MODULE, 'main.py': main}).traced([rule])
    assert (traced.stdout, traced.stderr) == ('3\n', '')
    assert [span.attributes for span in traced.journal.spans] == [{'size': 7}] * 3


def test_two_rules_on_one_function_are_both_on_again_after_a_deep_recursion(tmp_path: Path) -> None:
    main = 'import m\nm.deep(200)\nm.deep(0)\n'
    rules = [function('a', 'm:deep'), function('b', 'm:deep')]
    traced = Program(tmp_path, {'m.py': MODULE, 'main.py': main}).traced(rules)
    assert sorted(traced.journal.names()[-2:]) == ['a', 'b']
    assert traced.journal.reports('fault') == []
