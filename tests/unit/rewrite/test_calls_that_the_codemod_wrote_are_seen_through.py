# SPDX-License-Identifier: Apache-2.0
"""`_lens_call(...)(f)(x)` is the program's `f(x)`: a rule finds it as before, and nothing of the codemod's besides."""

from __future__ import annotations

import ast

import pytest

from lens_auto.rewrite.pattern import parse
from lens_auto.rewrite.places import Wanted, find

PLAIN = 'torch.save(state, path)\n'
WRITTEN = {
    'lens': "_lens_call('rl.save', group='checkpoint')(torch.save)(state, path)\n",
    'otel': "_lens_tracer.start_as_current_span('rl.save')(torch.save)(state, path)\n",
    'otel, for Ray': "_lens_span('rl.save')(torch.save)(state, path)\n",
    'nemo-lens': "_lens_trace_fn('checkpoint', 'rl.save')(torch.save)(state, path)\n",
}


@pytest.mark.parametrize('style', WRITTEN)
def test_a_call_is_what_the_program_calls(style: str) -> None:
    for text in (PLAIN, WRITTEN[style]):
        wanted = Wanted('k', 'call', '', parse('call', 'torch.save($what, $$$)'))
        [found] = find(ast.parse(text), [wanted], text)
        assert found.problem == ''
        [place] = found.places
        assert ast.unparse(place.node) == text.rstrip()
        assert isinstance(place.captures['what'], ast.Name) and place.captures['what'].id == 'state'


@pytest.mark.parametrize('style', WRITTEN)
def test_calls_of_the_codemods_own_are_none_of_the_programs(style: str) -> None:
    text = f"with timer, _lens_block('rl.x', group='wait'):\n    {WRITTEN[style]}"
    [found] = find(ast.parse(text), [Wanted('k', 'call', '', parse('call', '$_($$$)'), (0, None))], text)
    assert [ast.unparse(place.node) for place in found.places] == [WRITTEN[style].rstrip()]
