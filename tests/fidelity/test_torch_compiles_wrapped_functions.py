# SPDX-License-Identifier: Apache-2.0
"""torch.compile and TorchScript see through the code around a function, and open no span."""

import json
import sys
from pathlib import Path

import pytest

from tests.helpers.program import Program, const, function

pytest.importorskip('torch')

MODULE = """
    def plain(x, k=2): return (x * k).sin() + 1
    def varargs(*xs, **scale): return sum(xs) * scale.get('by', 1)
    def keywords(x, *, k=3): return x * k
    class Model:
        def __init__(self): self.k = 2
        def method(self, x): return x * self.k
    def make(step):
        def closure(x): return x + step
        return closure
    closure = make(5)
    def outer(x): return plain(x) + inner(x)
    def inner(x): return x - 1
    def typed(x, k: int): return x * k
"""
LATER = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
        def forward(self, x, mask=None): return self.linear(x).relu()
        def extra(self, x): return self.forward(x) * 2
    def script_me(x: torch.Tensor, k: int = 2) -> torch.Tensor:
        return x * k
    class Scripted(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1
    @torch.compile(backend='eager')
    def compiled(x): return x * 3
    @torch.no_grad()
    def no_grad(x): return x * 2
"""
MAIN = """
    {first}
    {second}
    import torch, json, warnings
    import m, late
    warnings.simplefilter('ignore')
    x = torch.arange(4.0)
    found = {{}}
    def compare(name, call, *args, **kwargs):
        torch._dynamo.reset()
        expected = call(*args, **kwargs)
        compiled = torch.compile(call, fullgraph=True, backend='aot_eager')
        try: same = all(torch.allclose(compiled(*args, **kwargs), expected) for _ in range(3))
        except Exception as error: same = type(error).__name__ + str(error)[:300]
        torch._dynamo.reset()
        explained = torch._dynamo.explain(call)(*args, **kwargs)
        found[name] = [same, explained.graph_break_count, explained.graph_count]
    import sys
    runtime = sys.modules.get('_lens_rt')
    compare('plain', m.plain, x)
    compare('varargs', m.varargs, x, x, by=2)
    compare('keywords', m.keywords, x, k=4)
    compare('method', m.Model().method, x)
    compare('closure', m.closure, x)
    compare('nested', m.outer, x)
    compare('module', late.Net().eval(), x)
    compare('module method', late.Net().extra, x)
    compare('no_grad', late.no_grad, x)
    compare('lambda', lambda y: m.plain(y) + late.no_grad(y), x)
    torch._dynamo.reset()
    count = []
    def backend(graph, inputs): count.append(1); return graph.forward
    compiled = torch.compile(m.plain, backend=backend, fullgraph=True)
    for module in ('colorsys', 'sndhdr', 'this_is_not', 'chunk', 'bdb'):
        compiled(x)
        try: __import__(module)
        except ImportError: pass
    found['compiled once'] = len(count)
    found['script'] = [torch.jit.script(late.script_me)(x, 3).tolist(), torch.jit.script(late.Scripted())(x).tolist()]
    found['export'] = len(torch.export.export(late.Net(), (x,)).graph_module.code) > 0
    found['compiled itself'] = [late.compiled(x).tolist() for _ in range(2)]
    found['eager'] = [m.plain(x).tolist()]
    print(json.dumps(found))
"""
NAMES = ['m:plain', 'm:varargs', 'm:keywords', 'm:Model.method', 'm:closure', 'm:outer', 'm:inner', 'late:Net.forward']
NAMES += ['late:Net.extra', 'late:script_me', 'late:Scripted.forward', 'late:no_grad', 'late:compiled']
RULES = [function(f'{i:02}', name, name=name, attributes={'one': const(1)}) for i, name in enumerate(NAMES)]


@pytest.mark.parametrize(
    'order', [('import m', 'import torch'), ('import torch', 'import m')], ids=['before torch', 'after torch']
)
def test_a_wrapped_function_compiles_in_one_graph_and_records_nothing_while_it_does(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    source = MAIN.format(first=order[0], second=order[1])
    program = Program(tmp_path, {'m.py': MODULE, 'late.py': LATER, 'main.py': source})
    plain, traced = program.plain(), program.traced(RULES)
    assert plain.code == traced.code == 0, (plain.stderr, traced.stderr)
    expected, found = json.loads(plain.stdout), json.loads(traced.stdout)
    assert found == expected
    assert {tuple(answer) for name, answer in found.items() if answer and name in EVERY} == {(True, 0, 1)}
    assert found['compiled once'] == 1
    # Spans of the calls that ran eagerly, for comparison and under jit: none of the compiled ones.
    assert traced.journal.names().count('m:plain') == 4
    assert traced.journal.names().count('late:Net.forward') == 2
    assert traced.journal.names().count('late:compiled') == 2  # around the compiled code, not inside it
    assert traced.journal.reports('fault') == traced.journal.reports('missing') == []


EVERY = ('plain', 'varargs', 'keywords', 'method', 'closure', 'nested', 'module', 'module method', 'no_grad', 'lambda')


def test_torch_that_is_being_imported_when_we_wake_is_asked_all_the_same(tmp_path: Path) -> None:
    """Stage 2 starts in the middle of torch's import, by a named module that torch imports."""
    source = """
        import torch, m
        def f(x): return m.plain(x)
        print(torch.compile(f, fullgraph=True, backend='eager')(torch.ones(1)).tolist())
    """
    program = Program(tmp_path, {'m.py': MODULE, 'main.py': source})
    rules = [
        function('p', 'm:plain'),
        function('q', 'torch.version:nothing'),
        function('r', 'torch.serialization:nothing'),
    ]
    traced = program.traced(rules, python=sys.executable)
    assert (traced.stderr, traced.code) == ('', 0)
    assert traced.journal.spans == []
