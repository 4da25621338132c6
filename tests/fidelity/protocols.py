# SPDX-License-Identifier: Apache-2.0
# pyright: reportAttributeAccessIssue=false, reportMissingImports=false
"""Drives generators, async generators and coroutines through random scripts and prints every outcome.

Seeded, so that it prints the same with and without the agent wherever the two behave alike.
"""

import asyncio
import contextvars
import gc
import random
import sys
import types
import warnings

warnings.simplefilter('ignore')
mine = contextvars.ContextVar('mine', default=0)


class Odd(Exception):
    pass


def echo(n):
    try:
        for i in range(n):
            try:
                got = yield i
                mine.set(mine.get() + 1)
                if got == 'stop':
                    return 'early'
                if got == 'raise':
                    raise Odd(i)
            except ValueError as error:
                yield ('caught', str(error), type(error.__context__).__name__)
    finally:
        mine.set(mine.get() + 10)
    return 'done'


def stubborn(n):
    try:
        yield n
    except GeneratorExit:
        yield 'not yet'


def converts(n):
    try:
        yield n
    except KeyError as error:
        raise Odd('from key') from error
    except ValueError:
        raise Odd('in value')  # noqa: B904  (its context is looked at)
    yield n + 1
    raise StopIteration('never')


def delegates(n):
    result = yield from echo(n)
    yield result
    return (yield from [1, 2])


def empty(n):
    return n
    yield


@types.coroutine
def old(n):
    got = yield n
    return got


async def awaits(n):
    try:
        first = await old(n)
        second = await old(n + 1)
    except ValueError:
        return await old('again')
    finally:
        mine.set(mine.get() + 5)
    return first, second


async def a_echo(n):
    try:
        for i in range(n):
            try:
                await asyncio.sleep(0)
                got = yield i
                mine.set(mine.get() + 1)
                if got == 'stop':
                    return
                if got == 'raise':
                    raise Odd(i)
            except ValueError as error:
                yield ('caught', str(error), type(error.__context__).__name__)
    finally:
        await asyncio.sleep(0)
        mine.set(mine.get() + 10)


async def a_stubborn(n):
    while n:
        try:
            yield n
        except GeneratorExit:
            yield 'not yet'
        n -= 1


async def a_converts(n):
    try:
        yield n
    except KeyError as error:
        raise Odd('from key') from error
    except ValueError:
        raise Odd('in value')  # noqa: B904  (its context is looked at)
    except asyncio.CancelledError:
        raise
    yield n + 1
    raise StopAsyncIteration('never')


async def a_empty(n):
    return
    yield


SYNC = [echo, converts, delegates, empty, old]
ASYNC = [a_echo, a_stubborn, a_converts, a_empty]


def thrown(rng):
    kind = rng.choice(
        [ValueError, KeyError, Odd, GeneratorExit, StopIteration, StopAsyncIteration, KeyboardInterrupt, None]
    )
    return ValueError if kind is None else kind('thrown')


def shown(error):
    cause, context = type(error.__cause__).__name__, type(error.__context__).__name__
    return (type(error).__name__, str(error.args), cause, context, getattr(error, 'value', None))


def script(rng, made):
    log = []
    for _ in range(rng.randrange(1, 7)):
        op = rng.choice(['next', 'next', 'send', 'send', 'stop', 'raise', 'throw', 'throw', 'close'])
        try:
            if op == 'next':
                log.append(next(made) if hasattr(made, '__next__') else made.send(None))
            elif op == 'throw':
                log.append(made.throw(thrown(rng)))
            elif op == 'close':
                log.append(('closed', made.close()))
            else:
                log.append(made.send({'send': rng.randrange(9)}.get(op, op)))
        except BaseException as error:
            log.append(shown(error))
        log.append(mine.get())
    return log


async def a_script(rng, made):
    log = []
    for _ in range(rng.randrange(1, 7)):
        op = rng.choice(['next', 'next', 'send', 'stop', 'raise', 'throw', 'throw', 'close', 'cancel', 'abandon'])
        try:
            if op == 'next':
                log.append(await made.__anext__())
            elif op == 'throw':
                log.append(await made.athrow(thrown(rng)))
            elif op == 'close':
                log.append(('closed', await made.aclose()))
            elif op == 'cancel':
                task = asyncio.ensure_future(made.__anext__())
                await asyncio.sleep(0)
                task.cancel()
                log.append(await task)
            elif op == 'abandon':
                made.asend(None).close()
            else:
                log.append(await made.asend({'send': rng.randrange(9)}.get(op, op)))
        except BaseException as error:
            log.append(shown(error))
        log.append(mine.get())
    return log


async def elsewhere(rng):
    """Begun in one task, gone on with and closed in others."""
    made = a_echo(3)

    async def task(step):
        mine.set(0)
        return step, await made.__anext__() if step < 2 else await made.aclose(), mine.get()

    return [await asyncio.create_task(task(step)) for step in range(3)]


async def unfinished(log):
    """What is left open when the loop ends: closed by asyncio, one generator at a time."""
    asyncio.get_running_loop().set_exception_handler(
        lambda loop, context: log.append(str(context.get('message')).partition(' at ')[0])
    )
    kept = [a_echo(3), a_echo(2), a_stubborn(2)]
    for made in kept:
        log.append(await made.__anext__())
    lost = a_echo(5)
    log.append(await lost.__anext__())
    del lost
    gc.collect()
    await asyncio.sleep(0.01)
    log.append(mine.get())
    globals()['kept'] = kept


async def twice(log):
    """Two users at once."""
    made = a_echo(3)
    first = asyncio.ensure_future(made.__anext__())
    await asyncio.sleep(0)
    for call in (made.__anext__, made.aclose):
        try:
            log.append(await call())
        except BaseException as error:
            log.append(shown(error))
    log.append(await first)
    await made.aclose()


async def cancelled(log):
    async def waits():
        await awaiting()

    for _ in range(2):
        task = asyncio.ensure_future(waits())
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except BaseException as error:
            log.append(shown(error))
    log.append(await asyncio.gather(fails(1), fails(2), return_exceptions=True))


async def awaiting():
    await asyncio.sleep(10)


async def fails(n):
    await asyncio.sleep(0)
    raise Odd(n)


def asynchronous(seed, made):
    """A fresh loop each: a generator left broken must not be met by the next script's loop."""
    log = []
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: log.append(str(context.get('message')).partition(' at ')[0]))
    hooked = []
    try:
        log.append(loop.run_until_complete(a_script(random.Random(seed), made)))
        hooked = [len(loop._asyncgens)]
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
    return log, hooked


def main():
    for seed in range(250):
        rng = random.Random(seed)
        for function in SYNC:
            context = contextvars.copy_context()
            print(seed, function.__name__, context.run(script, rng, function(3)))
        context = contextvars.copy_context()
        print(seed, 'awaits', context.run(script, rng, awaits(3)))
    for seed in range(120):
        for function in ASYNC:
            context = contextvars.copy_context()
            print(seed, function.__name__, context.run(asynchronous, seed, function(3)))
    made = stubborn(1)
    try:
        print(next(made), made.close())
    except RuntimeError as error:
        print(error)
    print(asyncio.run(elsewhere(random.Random(1))))
    for job in (unfinished, twice, cancelled):
        log = []
        asyncio.run(job(log))
        print(job.__name__, log)


if __name__ == '__main__':
    import protocols

    protocols.main()
    sys.stdout.flush()
