# SPDX-License-Identifier: Apache-2.0
"""How workers of Ray come to run our stage 1, where they would not by inheriting the driver's environment.

A local cluster inherits it, and then nothing is done here. Two cases are left: a runtime environment that replaces
PYTHONPATH, into which our entry is merged; and a cluster that was there before the driver, whose job gets the variables
that nobody else has set.
"""

from __future__ import annotations

import os
import sys

from lens_auto.record.format import REACH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.recorder import Recorder

# Above some 128 KiB of environment Ray's workers never start, and exec needs room for the arguments too.
LARGEST = 96 * 1024
_SCRIPT_MODE = 0


def stage_one(environ: Any) -> str:
    """The folder of stage 1 on PYTHONPATH: its first entry that the launcher put there, '' when there is none.

    Args:
        environ: `os.environ`.
    """
    first: str = environ.get('PYTHONPATH', '').partition(os.pathsep)[0]
    return first if os.path.isfile(os.path.join(first, 'sitecustomize.py')) else ''


class RuntimeEnvironments:
    """`RuntimeEnv.serialize(self)`: what Ray sends of a task's, an actor's or a job's runtime environment."""

    __slots__ = ('_folder',)

    def __init__(self, environ: Any):
        """See the class.

        Args:
            environ: `os.environ`.
        """
        self._folder = stage_one(environ)

    def after(self, args: tuple[Any, ...], result: Any) -> Any:
        """Put our entry in front of a PYTHONPATH that replaces the inherited one; the user's object is left alone.

        Args:
            args: The runtime environment.
            result: It, as JSON.
        """
        runtime_env = args[0]
        variables = runtime_env.get('env_vars')
        path = variables.get('PYTHONPATH') if variables else None
        folder = self._folder
        if path is None or not folder or folder in path.split(os.pathsep):
            return result
        import json  # Ray has just used it

        merged = json.loads(result)
        merged['env_vars']['PYTHONPATH'] = folder + os.pathsep + path if path else folder
        return json.dumps(merged, sort_keys=True)


class Connections:
    """`ray._private.worker.connect(node, ..., mode, ..., job_config, ...)`: a driver joins a cluster."""

    __slots__ = ('_environ', '_recorder')

    def __init__(self, recorder: Recorder, environ: Any):
        """See the class.

        Args:
            recorder: The process's recorder.
            environ: `os.environ`.
        """
        self._recorder = recorder
        self._environ = environ

    def before(self, args: tuple[Any, ...]) -> None:
        """A process is about to connect.

        Args:
            args: The call's arguments, in the order of `connect`'s parameters.
        """
        ray: Any = sys.modules.get('ray._private.worker')
        names = _parameters(ray.connect)
        given = dict(zip(names, args, strict=False))
        node, job_config = given.get('node'), given.get('job_config')
        if given.get('mode') != _SCRIPT_MODE or node is None or job_config is None:
            return
        if node.head:
            return  # started by this driver: its workers inherit the environment
        reason = self._merge(job_config)
        if reason:
            self._recorder.report(REACH, {'workers': 'unreachable', 'reason': reason})

    def _merge(self, job_config: Any) -> str:
        """Give the job our variables; what keeps us from it otherwise."""
        ours = {name: value for name, value in self._environ.items() if name.startswith('LENS_') and '$' not in value}
        folder = stage_one(self._environ)
        if not folder:
            return 'PYTHONPATH of the driver does not name our stage 1'
        runtime_env = dict(job_config.runtime_env or {})
        variables = dict(runtime_env.get('env_vars') or {})
        for name in ours:
            if name in variables and variables[name] != ours[name]:
                return f'the job sets {name} itself'
        path = variables.get('PYTHONPATH')
        if path is None:
            # Ray expands this on the node, to nothing where the cluster has no PYTHONPATH.
            path = '${PYTHONPATH}'
        if folder not in path.split(os.pathsep):
            ours['PYTHONPATH'] = folder + os.pathsep + path
        merged = {**variables, **ours}
        size = sum(len(name) + len(str(value)) + 2 for name, value in merged.items())
        if size > LARGEST:
            return f'the job has {size // 1024} KiB of environment, and Ray starts no workers above 128'
        runtime_env['env_vars'] = merged
        job_config.set_runtime_env(runtime_env)
        return ''


def _parameters(function: Any) -> tuple[str, ...]:
    while getattr(function, '__wrapped__', None) is not None:
        function = function.__wrapped__
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
