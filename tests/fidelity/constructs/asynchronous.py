# SPDX-License-Identifier: Apache-2.0
import asyncio
import contextlib


class Ticker:
    def __init__(self, n):
        self.n = n

    def __aiter__(self):
        return self

    async def __anext__(self):
        await asyncio.sleep(0)
        if not self.n:
            raise StopAsyncIteration
        self.n -= 1
        return self.n


class Manager:
    async def __aenter__(self):
        print('enter')
        return self

    async def __aexit__(self, *error):
        print('exit', error[0])
        return error[0] is KeyError


async def agen(n):
    async for i in Ticker(n):
        try:
            got = yield i
            if got:
                print('got', got)
        finally:
            print('left', i)


async def work(x):
    await asyncio.sleep(0)
    return x * 2


async def main():
    async for i in agen(3):
        if i == 2:
            continue
        print(i)
    else:
        print('else')
    async with Manager() as m, Manager():
        print(await work(m.__class__.__name__))
    async with Manager():
        raise KeyError
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(Manager())
    print(await asyncio.gather(work(1), work(2), *[work(i) for i in range(3)]))
    g = agen(3)
    print(await g.__anext__(), await g.asend('hi'))
    await g.aclose()
    print([i async for i in agen(2)], [await work(i) for i in range(2)])
    task = asyncio.create_task(endless())
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print('cancelled')
    try:
        await 5
    except TypeError as error:
        print(error)
    try:
        await failing()
    except ZeroDivisionError as error:
        print(error.__traceback__.tb_lineno - main.__code__.co_firstlineno)


async def failing():
    return 1 / 0


async def endless():
    while True:
        await asyncio.sleep(0)


asyncio.run(main())
