# SPDX-License-Identifier: Apache-2.0
# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false, reportOptionalMemberAccess=false, reportMissingImports=false
"""Asks Python's own tools about every kind in `gallery`, and prints their answers. Run with and without the agent."""

import asyncio
import copy
import functools
import hashlib
import inspect
import json
import pickle
import sys
import typing
import weakref

import gallery as g

PREDICATES = [name for name in dir(inspect) if name.startswith('is') and callable(getattr(inspect, name))]


def predicates(found):
    return [name for name in PREDICATES if getattr(inspect, name)(found)] + [
        asyncio.iscoroutinefunction(found) if sys.version_info < (3, 14) else None,
        callable(found),
        type(found).__qualname__,
    ]


def hints(found):
    return sorted((name, str(hint)) for name, hint in typing.get_type_hints(found).items())


def names(found):
    attributes = ('__name__', '__qualname__', '__module__', '__doc__', '__defaults__', '__kwdefaults__', '__wrapped__')
    return [str(getattr(found, name, None)).partition(' at ')[0] for name in attributes] + sorted(vars(found))


def code_facts(found):
    code = getattr(found, '__code__', None)
    if code is None:
        return None
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [
        code.co_name,
        code.co_filename,
        code.co_firstlineno,
        code.co_argcount,
        code.co_posonlyargcount,
        list(names),
    ] + [
        code.co_freevars,
        code.co_flags & ~0x50,
        code.co_cellvars == () or None,
        getattr(code, 'co_qualname', None),
        code.co_kwonlyargcount,
    ]


def wraps(found):
    @functools.wraps(found)
    def outer(*args, **kwargs):
        return found(*args, **kwargs)

    return [
        str(inspect.signature(outer)),
        outer.__name__ if hasattr(found, '__name__') else None,
        str(inspect.unwrap(outer))[:20],
    ]


def copied(found):
    return [copy.copy(found) is found, copy.deepcopy(found) is found, type(copy.copy(found)).__name__]


def pickled(found):
    data = pickle.dumps(found)
    return [hashlib.sha256(data).hexdigest(), pickle.loads(data) == found]


def closure(found):
    return sorted(inspect.getclosurevars(inspect.unwrap(found)).nonlocals)


def module_of(found):
    return [inspect.getmodule(found).__name__, inspect.getfile(inspect.unwrap(found))[-10:]]


CHECKS = {
    'signature': lambda f: str(inspect.signature(f)),
    'getsource': lambda f: inspect.getsource(inspect.unwrap(f)),
    'predicates': predicates,
    'getfullargspec': lambda f: str(inspect.getfullargspec(f)),
    'get_type_hints': hints,
    'names, docs': names,
    'code': code_facts,
    'weakref, hash': lambda f: [weakref.ref(f)() is f, hash(f) == hash(f), f == f],
    'copy, deepcopy': copied,
    'pickle': pickled,
    'functools.wraps': wraps,
    'closure': closure,
    'getmodule': module_of,
    'getattr_static': lambda f: type(inspect.getattr_static(g, 'function')).__name__,
    'repr': lambda f: repr(f).partition(' at ')[0],
}


def ask():
    answers = {}
    for kind, (path, _) in g.TARGETS.items():
        found = eval(path)
        for name, check in CHECKS.items():
            try:
                answers[f'{kind}|{name}'] = check(found)
            except Exception as error:
                answers[f'{kind}|{name}'] = [type(error).__name__, str(error).partition(' at ')[0][:80]]
    return answers


async def run_async():
    base = g.Base(5)
    async with g.async_manager(1) as entered:
        pass
    return [
        await g.coroutine(1),
        [i async for i in g.async_generator(3)],
        entered,
        await base.async_method(2),
        await g.old_coroutine(4),
    ]


def wrong(call):
    try:
        return call()
    except TypeError as error:
        return str(error)


def behave():
    base, child = g.Base(5), g.Child(6)
    with g.manager(1) as entered, g.ManagerClass(2) as block:
        pass
    results = {
        'function': [
            g.function(1),
            g.function(b='c', a=2),
            wrong(lambda: g.function()),
            wrong(lambda: g.function(1, 2, 3)),
        ],
        'all kinds of parameters': [g.many(1, c=3), g.many(1, 2, 3, 4, c=5, d=6, e=7), wrong(lambda: g.many(a=1, c=1))],
        'keyword-only': [g.keywords(first=1), wrong(lambda: g.keywords(1))],
        'no parameters': [g.none(), wrong(lambda: g.none(1))],
        'method': [base.method(), child.method(k=2), g.Base.method(base, 3), functools.partial(base.method, 4)()],
        'classmethod': [g.Base.of_class(1), child.of_class(2)],
        'staticmethod': [g.Base.static(1), base.static(2)],
        'property': [base.prop, child.prop],
        'cached_property': [base.cached, base.cached, vars(base)],
        'inherited, named on the subclass': [base.inherited(1), child.inherited(2)],
        'override that calls super': [base.overridden(), child.overridden()],
        'generator': [list(g.generator(3)), wrong(lambda: g.generator())],
        'generator method': list(base.generates()),
        'contextmanager': [entered, g.manager(3).__class__.__name__],
        'context manager class': block.n,
        'callable instance': [g.instance(2), g.Callable()(3)],
        'partial': [g.partial(2), g.partially(3, 4)],
        'lru_cache': [g.lru(1), g.lru(1), str(g.lru.cache_info())],
        'lambda': g.anonymous(1),
        'decorated with wraps': [g.decorated(1), g.decorated(1, b=3)],
        'dataclass method': [g.Data().method(), g.Data(2).method(k=4), g.Data() == g.Data()],
        'closure with free variables': [g.nested(1), g.nested(2), [c.cell_contents for c in g.nested.__closure__]],
        'async': asyncio.run(run_async()),
        'aliases': [
            g.ALIASES['function'] is g.function,
            g.REGISTRY['function'] is g.function,
            g.ALIASES['method'] is g.Base.method,
            g.ALIASES['nested'] is g.nested,
            base.method == base.method,
        ],
    }
    generator, coroutine, agen = g.generator(2), g.coroutine(1), g.async_generator(1)
    for made in (generator, coroutine, agen):
        state = [type(made).__name__, made.__name__, made.__qualname__, repr(made).partition(' at ')[0]]
        results[state[0]] = [*state, inspect.isawaitable(made), inspect.isgenerator(made)]
    results['state'] = [inspect.getgeneratorstate(generator), next(generator), inspect.getgeneratorstate(generator)]
    coroutine.close()
    generator.close()
    return results


if __name__ == '__main__':
    print(json.dumps({'answers': ask(), 'behaviour': behave()}))
