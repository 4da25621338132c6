# SPDX-License-Identifier: Apache-2.0
"""What a program can see of us when it looks at frames: one more for each wrapped call. docs/limits.md says so."""

from pathlib import Path

from tests.helpers.program import Program, every_python, function, python

MODULE = """
    import inspect, sys, warnings
    def warn(): warnings.warn('old', UserWarning, stacklevel=2)
    def who(): return sys._getframe(1).f_code.co_name
    def boom(): raise ValueError('x')
    def gen():
        value = 1
        yield value
    def plain(a): return len(str(a))
"""
MAIN = """
    import inspect, m, traceback, warnings
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        m.warn()
    print('warning', caught[0].filename[-7:])
    print('caller', m.who())
    try: m.boom()
    except ValueError as error: print('traceback', [f.name for f in traceback.extract_tb(error.__traceback__)])
    made = m.gen(); next(made)
    print('generator', sorted(n for n in inspect.getgeneratorlocals(made) if not n.startswith('_lens')))
    print('globals', sorted(inspect.getclosurevars(m.plain).builtins))
"""
DIFFERENCES = {
    'warning': ('main.py', '/m.py'),
    'caller': ('<module>', 'who'),
    'generator': ("['value']", '[]'),
    'globals': ("['len', 'str']", "['BaseException', 'KeyboardInterrupt', 'SystemExit', 'len', 'str']"),
}


@every_python
def test_one_frame_more_for_each_wrapped_call(tmp_path: Path, version: str) -> None:
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': MAIN})
    rules = [function(name, f'm:{name}') for name in ('warn', 'who', 'boom', 'gen', 'plain')]
    runs = program.plain(python=python(version)), program.traced(rules, python=python(version))
    differences = dict(DIFFERENCES)
    if version == '3.10':  # later ones let us take our frame out again
        differences['traceback'] = ("['<module>', 'boom']", "['<module>', 'boom', 'boom']")
    plain, traced = (dict(line.split(' ', 1) for line in run.stdout.splitlines()) for run in runs)
    for what, (without, with_us) in differences.items():
        assert plain[what].endswith(without) and traced[what].endswith(with_us), what
