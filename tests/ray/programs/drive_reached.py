# SPDX-License-Identifier: Apache-2.0
"""`drive_reached.py ORDER`: JSON with `init` (of ray.init) and `cells` (the arguments of each reached.phase)."""

import json
import sys

import ray
import reached

order = json.loads(sys.argv[1])
ray.init(**order['init'])
for cell in order['cells']:
    reached.phase(**cell)
ray.shutdown()
