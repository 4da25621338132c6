# SPDX-License-Identifier: Apache-2.0
"""The user's own sitecustomize, usercustomize and .pth files run as if stage 1 were not there."""

import json
from pathlib import Path

import pytest

from tests.helpers.program import Program, every_python, function, python

STATE = """
    import json, os, sys
    state = {'path': sys.path, 'modules': sorted(sys.modules), 'cached': sorted(sys.path_importer_cache),
             'finders': [getattr(f, '__name__', type(f).__name__) for f in sys.meta_path],
             'hooks': [str(h)[:30] for h in sys.path_hooks], 'excepthook': sys.excepthook is sys.__excepthook__}
    for attempt in range(2):
        try:
            import sitecustomize
            state['again'] = [sitecustomize.__name__, sitecustomize.__file__, sitecustomize.__spec__.name]
        except BaseException as error:
            state['again'] = [type(error).__name__, str(error)]
    print(json.dumps(state))
"""
SITECUSTOMIZE = {
    'absent': None,
    'prints': 'import sys; print("mine", __name__, __file__, file=sys.stderr)',
    'fails': 'raise ValueError("mine")',
    'needs what is not there': 'import no_such_module',
    'looks absent': 'raise ImportError("mine", name="sitecustomize")',
    'does not parse': 'def (',
    'exits': 'raise SystemExit(3)',
    'imports a named module': 'import target; print(target.f())',
    'changes the path': 'import sys; sys.path.append("/added"); import json',
}


@every_python
@pytest.mark.parametrize('content', SITECUSTOMIZE.values(), ids=SITECUSTOMIZE)
def test_the_users_sitecustomize_does_as_without_us(tmp_path: Path, version: str, content: str | None) -> None:
    program = Program(tmp_path, {'main.py': STATE, 'target.py': 'def f(): return 1'})
    if content is not None:
        program.write({'sitecustomize.py': content})
    plain = program.plain(python=python(version))
    traced = program.traced([function('f', 'target:f')], python=python(version))
    assert traced.code == plain.code
    if plain.code:  # no Python comes up: the traceback of that shows our line too
        assert traced.stderr.splitlines()[-1] == plain.stderr.splitlines()[-1]
        return
    assert traced.stderr == plain.stderr
    *before, plain_state = plain.stdout.splitlines()
    *after, traced_state = traced.stdout.splitlines()
    assert after == before
    expected, found = json.loads(plain_state), json.loads(traced_state)
    if 'target' not in (content or ''):
        # The whole difference of an idle process: one finder, and nothing imported.
        assert found.pop('finders') == ['_Finder', *expected.pop('finders')]
        assert found == expected
    else:
        for state in (expected, found):
            for name in ('finders', 'modules', 'cached'):
                state.pop(name)
        assert found == expected


@every_python
def test_pth_files_and_usercustomize_run_once_and_in_order(tmp_path: Path, version: str) -> None:
    executable = python(version)
    program = Program(tmp_path, {'main.py': 'print("main")', 'sitecustomize.py': 'print("sitecustomize")'})
    folder = tmp_path / 'base' / 'lib' / f'python{version}' / 'site-packages'
    folder.mkdir(parents=True)
    (folder / 'usercustomize.py').write_text('print("usercustomize")')
    (folder / 'some.pth').write_text('import sys; sys.stdout.write("pth\\n")\n')
    base = str(tmp_path / 'base')
    plain = program.plain(python=executable, PYTHONUSERBASE=base)
    traced = program.traced([function('f', 'target:f')], python=executable, PYTHONUSERBASE=base)
    assert traced.visible() == plain.visible()
    # A virtual environment has no user site.
    assert plain.stdout.split() in (['pth', 'sitecustomize', 'usercustomize', 'main'], ['sitecustomize', 'main'])


@every_python
@pytest.mark.parametrize('flags', ['-S', '-I', '-E'])
def test_where_python_ignores_the_path_we_are_not_reached(tmp_path: Path, version: str, flags: str) -> None:
    program = Program(tmp_path, {'main.py': 'import sys; print(sys.path, len(sys.meta_path))'})
    traced = program.traced([function('f', 'target:f')], flags, 'main.py', python=python(version))
    assert traced.processes == []
    if flags != '-S':  # the path itself is inherited, then
        assert traced.visible() == program.plain(flags, 'main.py', python=python(version)).visible()


@pytest.mark.parametrize('version', ['3.10', '3.12', '3.13'])
def test_modules_that_a_pth_file_imported_before_us_are_patched_when_another_wakes_us(
    tmp_path: Path, version: str
) -> None:
    files = {
        'early.py': 'def f(): return 1',
        'late.py': 'def f(): return 2',
        'main.py': 'import early, late; early.f(); late.f()',
    }
    program = Program(tmp_path, files)
    folder = tmp_path / 'base' / 'lib' / f'python{version}' / 'site-packages'
    folder.mkdir(parents=True)
    (folder / 'some.pth').write_text('import early\n')
    rules = [function('early', 'early:f'), function('late', 'late:f')]
    traced = program.traced(rules, python=python(version), PYTHONUSERBASE=str(tmp_path / 'base'))
    assert traced.journal.names() == ['early', 'late']
