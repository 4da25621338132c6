# SPDX-License-Identifier: Apache-2.0
"""The static resolver, on small packages that fail when they are imported."""

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from lens_auto.rules import cli, finding, resolver
from lens_auto.rules.plan import OTEL_MODULES, RAY_MODULES
from lens_auto.rules.plan_build import build

FILES = {
    'fw/__init__.py': "raise SystemExit('imported')\n",
    'fw/loop.py': """
        import contextlib
        import fw.util as util
        from typing import TYPE_CHECKING
        from .impl import train, Base as _Base, missing_name
        from fw.stars import *
        from . import timer
        if TYPE_CHECKING:
            from .impl import only_typed
        try:
            import fast
        except ImportError:
            def branchy(a): ...
        alias = train
        made = make()

        class Trainer(_Base):
            def fit(self, steps, *, lr): ...
            stop = fit
            @property
            def rank(self): ...
            @contextlib.contextmanager
            def time(self, label): yield
            @wrapped
            def decorated(self): ...
    """,
    'fw/impl.py': """
        import torch.nn
        def train(config, step): ...
        class Base:
            def inherited(self, x, **kwargs): ...
        class Module(torch.nn.Module):
            def forward(self): ...
        class Config:
            def __init__(self, name): ...
    """,
    'fw/stars.py': 'def starred(q): ...\n',
    'fw/timer.py': 'class Timer:\n    def start(self, name): ...\n    def stop(self, name): ...\n',
    'fw/util.py': '@overload\ndef f(a): ...\ndef f(b): ...\n',
    'fw/ctx.py': 'class Ctx:\n    def __enter__(self): ...\n    def __exit__(self, *a): ...\nclass Plain: ...\n',
    'fw/data.py': '@dataclass\nclass Data:\n    name: str\n    size: int = 0\n',
    'fw/lazy.py': 'def __getattr__(name): ...\n',
    'fw/old.py': '',
    'fw/deep/a.py': 'def wandered(): ...\nclass K:\n    def twice(self): ...\n',
    'fw/deep/b.py': 'class K:\n    def twice(self): ...\n',
    'fw/broken.py': 'def f(:\n',
    'fw/cext.cpython-311-x86_64-linux-gnu.so': '',
    'fw-1.2.dist-info/METADATA': 'Metadata-Version: 2.1\nName: fw\nVersion: 1.2\n',
    'solo.py': 'def run(): ...\n',
}


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    folder = tmp_path / 'env'
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))
    for suffix in __import__('importlib.machinery').machinery.EXTENSION_SUFFIXES[:1]:
        (folder / f'fw/native{suffix}').touch()
    return folder


def found(environment: Path, rule: str, head: str = '') -> tuple[str, str]:
    file = environment.parent / 'r.yaml'
    file.write_text(f'framework: t\n{head}\nrules:\n- {{{rule}}}\n')
    (only,) = resolver.resolve(build(finding.only([str(file)]), '1').plan, [str(environment)])
    return only.state, only.detail


def function(target: str, more: str = '') -> str:
    return f'kind: function, target: {target}, group: step, name: x{more}'


@pytest.mark.parametrize(
    ('target', 'state', 'detail'),
    [
        ('fw.impl:train', 'matched', ''),
        ('fw.loop:train', 'matched', 'defined in fw.impl'),
        ('fw.loop:alias', 'matched', 'defined in fw.impl'),
        ('fw.loop:starred', 'matched', 'defined in fw.stars'),
        ('fw.loop:branchy', 'matched', ''),
        ('fw.loop:made', 'matched', ''),
        ('fw.loop:util.f', 'matched', 'defined in fw.util'),
        ('fw.loop:timer.Timer.start', 'matched', 'defined in fw.timer'),
        ('fw.loop:Trainer.fit', 'matched', ''),
        ('fw.loop:Trainer.stop', 'matched', ''),
        ('fw.loop:Trainer.rank', 'matched', ''),
        ('fw.loop:Trainer.time', 'matched', ''),
        ('fw.loop:Trainer.inherited', 'matched', 'defined in fw.impl'),
        ('fw.ctx:Ctx', 'matched', ''),
        ('fw.data:Data.__init__', 'matched', ''),
        ('solo:run', 'matched', ''),
        ('[fw.gone:x, fw.impl:train]', 'matched', ''),
        ('fw.old:wandered', 'moved', 'now at fw.deep.a:wandered'),
        ('fw.gone:train', 'moved', 'now at fw.impl:train'),
        ('fw.old:K.twice', 'ambiguous', 'now one of fw.deep.a:K.twice, fw.deep.b:K.twice'),
        ('fw.loop:Trainer.fitt', 'missing', 'did you mean Trainer.fit?'),
        ('fw.loop:only_typed', 'missing', 'no only_typed in fw.loop'),
        ('fw.loop:missing_name', 'missing', 'no missing_name in fw.loop'),
        ('fw.nowhere:no', 'missing', 'no module fw.nowhere'),
        ('fw.ctx:Plain', 'missing', 'Plain is a class: name one of its methods, such as Plain.__init__'),
        ('fw.impl:Module.parameters', 'not checkable', 'the base class `torch.nn.Module` of Module is out of reach'),
        ('fw.impl:Config.__init__', 'matched', ''),
        ('fw.lazy:anything', 'not checkable', 'fw.lazy makes its names when they are asked for'),
        ('fw.native:f', 'not checkable', 'fw.native: its source is not there (a C extension or bytecode only)'),
        ('sys:exit', 'not checkable', 'sys: it is built into the interpreter'),
        ('other:f', 'not installed', 'no package other'),
    ],
)
def test_where_a_target_is(environment: Path, target: str, state: str, detail: str) -> None:
    assert found(environment, function(target)) == (state, detail)


def test_a_source_of_a_newer_python_is_not_checkable(environment: Path) -> None:
    state, detail = found(environment, function('fw.broken:f'))
    assert state == 'not checkable'
    assert detail.startswith('fw.broken: its source does not parse with Python 3.')


@pytest.mark.parametrize(
    ('rule', 'state'),
    [
        (function('fw.impl:train', ', attributes: {x: arg.step}'), 'matched'),
        (function('fw.impl:train', ', attributes: {x: arg.gone}'), 'signature changed'),
        (function('fw.impl:train', ', attributes: {x: v + 1}'), 'signature changed'),
        (function('fw.loop:Trainer.inherited', ', attributes: {x: arg.anything}'), 'matched'),
        (function('fw.loop:Trainer.decorated', ', attributes: {x: arg.anything}'), 'matched'),
        (function('fw.loop:util.f', ', attributes: {x: arg.b}'), 'matched'),
        (function('fw.loop:util.f', ', attributes: {x: arg.a}'), 'signature changed'),
        (function('fw.data:Data.__init__', ', attributes: {x: arg.size}'), 'matched'),
        (function('fw.data:Data.__init__', ', attributes: {x: arg.depth}'), 'signature changed'),
        ('kind: logger, target: fw.impl:train, metrics_arg: config, metrics: {a: b}', 'matched'),
        ('kind: logger, target: fw.impl:train, metrics_arg: data, metrics: {a: b}', 'signature changed'),
        ('kind: timer, pair: fw.timer:Timer.start/stop, label_arg: name, labels: {a: drop}', 'matched'),
        ('kind: timer, pair: fw.timer:Timer.start/stop, label_arg: label, labels: {a: drop}', 'signature changed'),
        ('kind: timer, with: [fw.loop:Trainer.time, fw.timer:Timer.time], labels: {a: drop}', 'matched'),
        ('kind: timer, with: fw.timer:Timer.time, labels: {a: drop}', 'missing'),
        ('kind: timer, with: fw.timer:Timer.time, pair: fw.timer:Timer.start/stop, labels: {a: drop}', 'missing'),
        ('kind: timer, with: fw.loop:Trainer.time, pair: fw.timer:Timer.start/end, labels: {a: drop}', 'missing'),
        ('kind: timer, with: fw.loop:Trainer.time, pair: fw.timer:Timer.start/stop, labels: {a: drop}', 'matched'),
        ('kind: interval, start: fw.timer:Timer.start, stop: fw.timer:Timer.end, group: step, name: x', 'missing'),
        ('kind: interval, start: fw.timer:Timer.start, stop: fw.timer:Timer.stop, group: step, name: x', 'matched'),
    ],
)
def test_what_a_target_takes(environment: Path, rule: str, state: str) -> None:
    assert found(environment, rule, 'vars: {v: arg.gone}')[0] == state


def test_the_version_a_file_is_for(environment: Path) -> None:
    rule = function('fw.impl:gone')
    assert found(environment, rule, 'when: fw>=1,<2')[0] == 'missing'
    assert found(environment, rule, 'when: fw>=2') == ('not active', 'fw 1.2 is not >=2')
    assert found(environment, rule, 'when: other') == ('not installed', 'no package other')


def test_an_editable_install_by_import_hook_is_followed(environment: Path) -> None:
    source = environment.parent / 'src' / 'edited'
    source.mkdir(parents=True)
    (source / '__init__.py').write_text('def f(): ...\n')
    (environment / '__editable___edited_1_finder.py').write_text(
        f"import sys\nMAPPING: dict[str, str] = {{'edited': {str(source)!r}}}\n"
    )
    assert found(environment, function('edited:f')) == ('matched', '')


def test_the_command_prints_a_table_and_tells_ci(
    environment: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(environment)
    file = environment / 'r.yaml'
    file.write_text(f'framework: fw\nrules:\n- {{{function("fw.impl:train")}}}\n- {{{function("fw.old:wandered")}}}\n')
    assert cli.main(['check', 'r.yaml']) == 1
    assert capsys.readouterr().out == (
        'r.yaml  (fw)\n'
        '  line  kind      target           state\n'
        '  3     function  fw.impl:train    matched\n'
        '  4     function  fw.old:wandered  moved    now at fw.deep.a:wandered\n'
        '2 rules: 1 matched, 1 moved\n'
    )
    file.write_text(f'framework: fw\nrules:\n- {{{function("fw.impl:train")}}}\n')
    assert cli.main(['check', '--python', sys.executable, 'r.yaml']) == 0
    assert cli.main(['check', '--python', '/no/python', 'r.yaml']) == 2
    file.write_text('framework: fw\n')
    assert cli.main(['check', 'r.yaml']) == 2
    assert capsys.readouterr().err.endswith('r.yaml:1:1  a rule file needs `rules`\n    rules: the rules\n')


def test_show_plan_shows_everything_for_people_and_for_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'r.yaml').write_text(
        dedent("""\
        framework: t
        when: t<2
        rules:
        - {kind: timer, with: t:Timer.time, only_from: t.*, name: "rl.{label}", labels: {a: step, "b*": drop}}
        - {kind: resource, target: t:C.__init__, attributes: {rl.model: self.name}, settings: self.telemetry}
        """)
    )
    assert cli.main(['show-plan', 'r.yaml']) == 0
    shown = capsys.readouterr().out
    lines = [
        line.split(None, 1)[1] if line.startswith('  ') and line[2] != ' ' else line for line in shown.splitlines()
    ]
    assert lines == [
        'r.yaml  (t)',
        't<2',
        'timer, line 4',
        '    with       t:Timer.time',
        '    only_from  t.*',
        '    label      a -> rl.{label}  (group step)',
        '    label      b* -> dropped',
        'resource, line 5',
        '    targets    t:C.__init__',
        '                 rl.model = self.name',
        '    settings   self.telemetry',
        f'modules: {", ".join((*OTEL_MODULES, *RAY_MODULES))}, t, torch',
    ]
    assert cli.main(['show-plan', '--json', 'r.yaml']) == 0
    assert __import__('json').loads(capsys.readouterr().out)['modules'] == [*OTEL_MODULES, *RAY_MODULES, 't', 'torch']
