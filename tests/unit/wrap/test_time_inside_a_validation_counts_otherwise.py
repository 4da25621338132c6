# SPDX-License-Identifier: Apache-2.0
"""`inside_bucket`: spans inside that have their bucket from their group get another one, across threads too."""

from pathlib import Path

from tests.helpers.program import Program, const, function

MODULE = """
    import threading
    def validate(how):
        if how == 'thread':
            thread = threading.Thread(target=generate); thread.start(); thread.join()
        elif how == 'raise': raise ValueError
        else: generate()
    def generate(): own(); written(); umbrella()
    def own(): pass
    def written(): pass
    def umbrella(): pass
"""
RULES = [
    function('v', 'm:validate', inside_bucket='overhead'),
    function('g', 'm:generate', bucket='productive'),
    function('o', 'm:own', bucket='idle', own_bucket=True),
    function('w', 'm:written', bucket='productive', attributes={'rl.bucket': const('wasted')}),
    function('u', 'm:umbrella'),
]
OUTSIDE = 'g productive\n  o idle\n  w wasted\n  u'
INSIDE = 'v\n  g overhead\n    o idle\n    w wasted\n    u'


def test_buckets_inside_and_outside(tmp_path: Path) -> None:
    source = (
        'import m\nm.generate()\nm.validate("")\nm.generate()\nm.validate("thread")\n'
        'try: m.validate("raise")\nexcept ValueError: pass\nm.generate()\n'
    )
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': source})
    traced = program.traced(RULES)
    assert traced.visible() == program.plain().visible()
    tree = traced.journal.tree('rl.bucket').replace('rl.bucket=', '').replace("'", '')
    assert tree == '\n'.join([OUTSIDE, INSIDE, OUTSIDE, INSIDE, 'v!', OUTSIDE])
    assert traced.journal.reports('fault') == []
