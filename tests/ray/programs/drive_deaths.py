# SPDX-License-Identifier: Apache-2.0
# Ray's own annotations know less than Ray does.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportPrivateImportUsage=false
"""`drive_deaths.py FOLDER REPEATS WAY...`: lets workers die in these ways, in one Ray session where one will do."""

import os
import random
import signal
import sys
import time

import ray
from mortal import Mortal, lines, live

WITHIN = ('os._exit', 'SIGKILL')


def begin():
    ray.init(address='local', num_cpus=2, include_dashboard=False, log_to_driver=False)


def until(folder, *tags):
    """Wait until there is something to lose."""
    for tag in tags:
        deadline = time.monotonic() + 60
        while lines(folder, tag) < 5:
            assert time.monotonic() < deadline, f'{tag} does not start'
            time.sleep(0.01)


def start(folder, *tags):
    actors = [Mortal.remote() for _ in tags]
    refs = [actor.live.remote(tag, folder) for actor, tag in zip(actors, tags, strict=True)]
    until(folder, *tags)
    time.sleep(random.random() * 0.05)
    return actors, refs


def fails(ref):
    try:
        ray.get(ref, timeout=60)
    except ray.exceptions.GetTimeoutError:
        raise
    except ray.exceptions.RayError:
        return
    raise AssertionError('it lives')


def one_death(folder, way, number):
    """A death that the session survives."""
    tag = f'{way}-{number}'
    after = random.Random(tag).randrange(5, 40)
    if way in WITHIN:
        fails((_held := Mortal.remote()).live.remote(tag, folder, way, after))
    elif way.startswith('task '):
        fails(live.remote(tag, folder, way.partition(' ')[2], after))
    elif way == 'ray.kill':
        actors, refs = start(folder, tag)
        ray.kill(actors[0])
        fails(refs[0])
    else:  # SIGKILL by somebody else
        actor = Mortal.remote()
        pid = ray.get(actor.pid.remote(), timeout=60)
        ref = actor.live.remote(tag, folder)
        until(folder, tag)
        time.sleep(random.random() * 0.05)
        os.kill(pid, signal.SIGKILL)
        fails(ref)


def last_words(folder, way, number):
    """A death of the session or of the driver."""
    begin()
    kept = start(folder, f'{way}-{number}-a', f'{way}-{number}-b')
    if way == 'ray.shutdown':
        ray.shutdown()
    elif way == 'driver os._exit':
        os._exit(0)
    elif way == 'driver SIGKILL':
        os.kill(os.getpid(), signal.SIGKILL)
    elif way in ('driver SIGTERM', 'driver SIGINT'):
        os.kill(os.getpid(), getattr(signal, way.split()[1]))
        time.sleep(10)
    elif way == 'raylet SIGKILL':
        node = ray._private.worker._global_node
        os.kill(node.all_processes['raylet'][0].process.pid, signal.SIGKILL)
        time.sleep(3)
        os._exit(0)
    elif way == 'waits':  # for whoever kills the launcher
        time.sleep(3)
        ray.shutdown()
    return kept  # 'driver returns' falls off its end


def main(folder, repeats, ways):
    alone = ('ray.kill', 'SIGKILL by another', *WITHIN, *(f'task {way}' for way in WITHIN))
    if ways[0] in alone:
        begin()
    for way in ways:
        for number in range(int(repeats)):
            (one_death if way in alone else last_words)(folder, way, number)
    print('over', flush=True)


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
