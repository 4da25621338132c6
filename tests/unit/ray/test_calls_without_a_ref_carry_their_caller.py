# SPDX-License-Identifier: Apache-2.0
"""A method called with `num_returns=0` takes the caller's ids along where Ray declares the parameter for it."""

import inspect
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lens_auto.ray.carrier import PARAMETER, attach, detach
from lens_auto.record.span import current

HELPER = 'ray.util.tracing.tracing_helper'


def handle(*names: str) -> Any:
    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    return SimpleNamespace(_ray_method_signatures={'step': parameters})


@pytest.fixture
def helper(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = ModuleType(HELPER)
    made.__dict__['_is_tracing_enabled'] = lambda: False
    monkeypatch.setitem(sys.modules, HELPER, made)
    span: Any = SimpleNamespace(trace_id=b't' * 16, span_id=b's' * 8)
    token = current.set(span)
    yield made
    current.reset(token)


def test_the_ids_go_along_and_are_taken_out_again(helper: Any) -> None:
    kwargs: dict[str, Any] = {'a': 1}
    attach(handle('a', PARAMETER), 'step', kwargs)
    assert kwargs == {'a': 1, PARAMETER: b't' * 16 + b's' * 8}
    detach(kwargs)
    assert kwargs == {'a': 1}


def test_nothing_goes_along_where_ray_does_not_declare_it(helper: Any) -> None:
    kwargs: dict[str, Any] = {}
    attach(handle('a'), 'step', kwargs)
    attach(handle('a', PARAMETER), 'other', kwargs)
    assert kwargs == {}


def test_nothing_goes_along_while_ray_traces_or_the_caller_uses_the_name(helper: Any) -> None:
    mine = {PARAMETER: 'mine'}
    attach(handle(PARAMETER), 'step', mine)
    detach(mine)
    assert mine == {PARAMETER: 'mine'}
    helper._is_tracing_enabled = lambda: True
    kwargs: dict[str, Any] = {}
    attach(handle(PARAMETER), 'step', kwargs)
    assert kwargs == {}
