# SPDX-License-Identifier: Apache-2.0
# Ray's own annotations know less than Ray does.
# pyright: reportCallIssue=false
"""What runs in workers that are hard to reach, and the driver's calls to it."""

import json
import os
import re
import sys

import ray

PATIENCE = 90


def body(*args, **kwargs):
    return [*args, *sorted(kwargs.items())]


@ray.remote
def task(*args, **kwargs):
    return body(*args, **kwargs)


@ray.remote
class Worker:
    def work(self, *args, **kwargs):
        return body(*args, **kwargs)

    def stream(self, *args, **kwargs):
        yield body(*args, **kwargs)

    def sees(self, names, module):
        """Some variables, what a module says that only this worker has, and where modules are looked for."""
        found = __import__(module).helped(1, key=2) if module else None
        variables = [os.environ.get(name, '')[:40] for name in names]
        return [*variables, found, [re.sub('session_[^/]*', 'session', entry) for entry in sys.path]]


def tracing():
    """A user's own start of Ray's tracing."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    trace.set_tracer_provider(TracerProvider())


def hook(runtime_env):
    """A user's own RAY_RUNTIME_ENV_HOOK."""
    variables = {**(runtime_env or {}).get('env_vars', {}), 'OF_THE_USER': 'by the hook'}
    return {**(runtime_env or {}), 'env_vars': variables}


def phase(cell, options, names=(), module='', streams=True):
    """Call a task and an actor made with these options, and print what they said."""
    actor = Worker.options(**options).remote()
    said = [
        ray.get(task.options(**options).remote(1, key=2), timeout=PATIENCE),
        ray.get(actor.work.remote(1, key=2), timeout=PATIENCE),
        ray.get(actor.sees.remote(names, module), timeout=PATIENCE),
    ]
    if streams:
        said += [ray.get(ref) for ref in actor.stream.options(num_returns='streaming').remote(1, key=2)]
    print(json.dumps({'cell': cell, 'said': said}), flush=True)
