# SPDX-License-Identifier: Apache-2.0
# Ray's own annotations know less than Ray does.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
"""A driver that waits, and says which of Ray's functions have other code than Ray gave them."""

import json
import sys

import ray


@ray.remote
def score(value):
    return value


@ray.remote
class Worker:
    def step(self, value):
        return value

    def fails(self):
        raise KeyError('reward')


def waiting(worker):
    refs = [worker.step.remote(value) for value in range(3)]
    ready, _ = ray.wait(refs, num_returns=1)
    assert len(ready) == 1
    assert ray.get(refs) == [0, 1, 2]
    assert ray.get(score.remote(5)) == 5
    try:
        ray.get(worker.fails.remote())
    except KeyError:
        return


def ours():
    """Names of Ray's functions that have code of somebody else's."""
    places = {
        'ActorMethod.remote': ray.actor.ActorMethod.remote,
        'ActorMethod._remote': ray.actor.ActorMethod._remote,
        'ActorHandle._actor_method_call': ray.actor.ActorHandle._actor_method_call,
        'ActorClass._remote': ray.actor.ActorClass._remote,
        'RemoteFunction._remote': ray.remote_function.RemoteFunction._remote,
        'get': ray.get,
        'wait': ray.wait,
    }
    found = []
    for name, function in places.items():
        while getattr(function, '__wrapped__', None) is not None:
            function = function.__wrapped__
        if {'_lens_g', '_lens_h'} & set(function.__code__.co_varnames):
            found.append(name)
    return found


if __name__ == '__main__':
    before = ray.actor.ActorMethod.remote, ray.actor.ActorHandle._actor_method_call, ray.get
    ray.init(address='local', num_cpus=2, include_dashboard=False)
    import waits  # this file, as a module that rules can name

    waits.waiting(waits.Worker.remote())
    assert before == (ray.actor.ActorMethod.remote, ray.actor.ActorHandle._actor_method_call, ray.get)
    print(json.dumps({'ours': ours(), 'loaded': '_lens_rt' in sys.modules}))
    ray.shutdown()
