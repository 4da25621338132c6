# SPDX-License-Identifier: Apache-2.0
"""Classes and functions that Ray unpickles in a worker: their names, their script, the functions in them."""

import functools
from types import FunctionType, ModuleType
from typing import Any

import pytest

from lens_auto.hook.loaded import is_script_of, names_of, rest_of
from lens_auto.hook.resolve import Remote, Unresolved, resolve, resolve_in


class Base:
    def inherited(self) -> int:
        return 1


class Worker(Base):
    def step(self) -> int:
        return 2


def remote(name: str, module: str) -> Any:
    kind = type(name, (), {'__module__': module, '__getattr__': lambda self, name: 1 / 0})
    return kind()


def by_value() -> Any:
    names: dict[str, Any] = {'__name__': '__main__'}
    code = 'class Own:\n def base(self): pass\nclass Worker(Own):\n def step(self): pass\ndef task(): pass'
    exec(compile(code, '/home/me/examples/train.py', 'exec'), names)
    return names


def test_a_base_that_came_by_value_is_named_and_one_that_is_imported_is_not() -> None:
    worker = by_value()['Worker']
    assert [name[:2] for name in names_of('__main__', 'Worker', worker)][:2] == [
        ('__main__', 'Worker'),
        ('__main__', 'Own'),
    ]
    assert [name[:2] for name in names_of(__name__, 'Worker', Worker)] == [(__name__, 'Worker')]


@pytest.mark.parametrize(
    ('wanted', 'rest'), [('Worker', ''), ('Worker.step', 'step'), ('Workers.step', None), ('W', None)]
)
def test_what_a_rule_says_beyond_the_class(wanted: str, rest: str | None) -> None:
    assert rest_of(wanted, 'Worker') == rest


def test_a_script_is_known_by_the_end_of_its_path() -> None:
    names = by_value()
    for found in (names['Worker'], names['task']):
        assert is_script_of('train.py', found)
        assert is_script_of('examples/train.py', found)
        assert not is_script_of('rain.py', found)
        assert not is_script_of('train', found)


@pytest.mark.parametrize(('name', 'module'), [('ActorClass', 'ray.actor'), ('RemoteFunction', 'ray.remote_function')])
def test_what_ray_made_remote_is_not_patched_where_it_is_defined(name: str, module: str) -> None:
    where = ModuleType('where')
    where.__dict__.update(made=remote(name, module), other=type(name, (), {'__module__': 'mine'})())
    for qualname in ('made', 'made.step'):
        with pytest.raises(Remote):
            resolve(where, qualname)
    with pytest.raises(Unresolved) as raised:
        resolve(where, 'other')
    assert not isinstance(raised.value, Remote)


def test_functions_are_found_in_a_class_at_hand() -> None:
    assert resolve_in(Worker, 'step', 'Worker.step').functions[0] is Worker.step
    assert resolve_in(Worker.step, '', 'Worker.step').functions[0] is Worker.step
    with pytest.raises(Unresolved):
        resolve_in(Worker, 'stop', 'Worker.stop')


def test_rays_own_wrapper_leads_to_the_method() -> None:
    names: dict[str, Any] = {'__name__': 'ray.util.tracing.tracing_helper', 'functools': functools}
    code = """
def wrap(method):
    def _resume_span(self, *args, _ray_trace_ctx=None, **kwargs): return method(self, *args, **kwargs)
    return functools.wraps(method)(_resume_span)
"""
    exec(code, names)
    wrapped = type('Wrapped', (), {'step': names['wrap'](Worker.step)})
    found = resolve_in(wrapped, 'step', 'Wrapped.step').functions[0]
    assert isinstance(found, FunctionType)
    assert found is Worker.step
