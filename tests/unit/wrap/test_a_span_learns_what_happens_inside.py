# SPDX-License-Identifier: Apache-2.0
"""The `annotate` kind: attributes for the current span, if it has the name that the rule wants."""

from pathlib import Path
from typing import Any

from tests.helpers.program import Program, function

MODULE = """
def get(fail=False):
    log('get', 3, 'error' if fail else 'ok')
    if fail: raise ValueError
def log(op, keys, status): return op
def other(): log('other', 1, 'ok')
"""


def annotate(span: str, **attributes: Any) -> dict[str, Any]:
    rule = function('a' * 12, 'm:log', attributes=attributes)
    return {**rule, 'kind': 'annotate', 'span': span}


def test_the_span_around_it_gets_the_attributes(tmp_path: Path) -> None:
    source = 'import m\nm.get()\nm.other()\nm.log(1, 2, 3)\ntry: m.get(True)\nexcept ValueError: pass\n'
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': source})
    rules = [
        function('g', 'm:get', name='store get', attributes={'fixed': ('c', 1)}),
        function('o', 'm:other', name='other'),
        annotate('store *', status=('arg', 'status'), op=('result',), missing=('.', ('result',), 'nothing')),
    ]
    traced = program.traced(rules)
    assert traced.visible() == program.plain().visible()
    assert traced.journal.tree('fixed', 'status', 'op') == (
        "store get fixed=1 op='get' status='ok'\nother\nstore get! fixed=1 op='get' status='error'"
    ) or traced.journal.tree('fixed', 'status', 'op') == (
        "store get fixed=1 status='ok' op='get'\nother\nstore get! fixed=1 status='error' op='get'"
    )
    # Calls, annotated, ..., not readable, around which there was no such span.
    stats = traced.journal.stats['a' * 12]
    assert (stats[0], stats[1], stats[5], stats[6]) == (4, 2, 2, 2)
    assert traced.journal.reports('fault') == []


def test_only_from_is_where_the_call_comes_from(tmp_path: Path) -> None:
    source = 'import m\nm.get()\nm.store(m.log)\n'
    module = MODULE + "def store(f): return f('get', 1, 'ok')\n"
    other = 'import m\ndef call(): return m.log("get", 1, "ok")\n'
    main = source + 'import other\nm.wrap(other.call)\n'
    module += 'def wrap(f): return f()\n'
    program = Program(tmp_path, {'m.py': module, 'other.py': other, 'main.py': main})
    rule = {**annotate('*', status=('arg', 'status')), 'only_from': ('other',)}
    rules = [function('g', 'm:get', name='get'), function('w', 'm:wrap', name='wrap'), rule]
    assert program.traced(rules).journal.tree('status') == "get\nwrap status='ok'"


def test_a_decorator_that_passes_calls_on_is_not_where_a_call_comes_from(tmp_path: Path) -> None:
    tools = (
        'import functools\n'
        'def logged(f):\n'
        '    @functools.wraps(f)\n'
        '    def wrapper(*args, **kwargs):\n'
        '        return f(*args, **kwargs)\n'
        '    return wrapper\n'
    )
    module = MODULE + 'import tools\nlog = tools.logged(log)\n'
    program = Program(tmp_path, {'tools.py': tools, 'm.py': module, 'main.py': 'import m\nm.get()\n'})
    rule = {**annotate('*', failed=('frame', 'fail'), of=('caller', 'function')), 'only_from': ('m',)}
    traced = program.traced([function('g', 'm:get', name='get'), rule])
    assert traced.journal.tree('failed', 'of') == "get failed=False of='get'"
