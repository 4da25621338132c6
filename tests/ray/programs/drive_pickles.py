# SPDX-License-Identifier: Apache-2.0
# Ray's own annotations know less than Ray does.
# pyright: reportAttributeAccessIssue=false, reportPrivateImportUsage=false
"""Says what Ray would send of this script's own classes and functions, and how their calls are declared."""

import hashlib
import inspect
import json
import uuid
from types import SimpleNamespace

import ray
import ruled
from ray import cloudpickle

uuid.uuid4 = lambda: SimpleNamespace(hex='same')  # cloudpickle gives each class a random id


def function(one, *, two=2):
    return [one, two]


class Plain:
    def work(self, one, two=2):
        return [one, two]

    async def wait(self, one):
        return one

    @staticmethod
    def static(one):
        return one


Actor = ray.remote(Plain)
ruled.ruled(1)
for value in (function, Plain, Plain(), Plain.work):
    digest = hashlib.sha256(cloudpickle.dumps(value)).hexdigest()
    print(json.dumps({'what': repr(type(value)), 'sent': digest}))
modified = Actor.__ray_metadata__.modified_class
for name in ('__init__', 'work', 'wait', 'static'):
    print(json.dumps({'what': name, 'signature': str(inspect.signature(getattr(modified, name)))}))
print(json.dumps({'what': 'remote', 'signature': str(inspect.signature(Actor.remote))}))
