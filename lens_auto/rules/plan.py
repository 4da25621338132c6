# SPDX-License-Identifier: Apache-2.0
"""The compiled plan as bytes: what the launcher stores and every traced process loads.

Loaded in each process of a run, so it imports only what an interpreter has at hand anyway.
"""

from __future__ import annotations

import marshal
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Plan = dict[str, Any]

FORMAT = 3
"""Raised whenever the shape of the plan changes; a process of another format stands down."""

RAY_MODULES = (
    'ray._private.function_manager',
    'ray._private.worker',
    'ray.actor',
    'ray.remote_function',
    'ray.runtime_env.runtime_env',
)
"""Hooked in every run, as torch is: whose task a worker's span belongs to is no matter of rules."""

OTEL_MODULES = (
    'opentelemetry.metrics._internal.instrument',
    'opentelemetry.sdk.trace',
    'opentelemetry.trace',
)
"""Hooked in every run as well: spans that the program starts by hand join ours."""

_MAGIC = b'lens-plan\n'
# A plan of a thousand rules takes 300 KB; what is larger than this is not a plan.
_MAX_BYTES = 64 * 1024 * 1024


class PlanError(Exception):
    """A plan cannot be used.

    Attributes:
        reason: What a process reports as it stands down: `missing`, `unreadable`, `changed`, `not_a_plan` or `format`.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f'plan {reason}: {detail}')
        self.reason = reason


def sha256_hex(data: bytes) -> str:
    """The SHA-256 of `data`, without hashlib where the interpreter has its own: hashlib loads OpenSSL, 2 ms."""
    # One name on 3.12 and later, the other before, neither in a build that leaves them out.
    for name in ('_sha2', '_sha256', 'hashlib'):
        try:
            digest: str = __import__(name).sha256(data).hexdigest()
        except ImportError:
            continue
        return digest
    raise ImportError('no module for SHA-256')


def dump(plan: Plan) -> bytes:
    """The plan as bytes. marshal version 2 reads the same on every Python the agent supports."""
    return _MAGIC + bytes((FORMAT,)) + marshal.dumps(plan, 2)


def speak(plan: Plan, vocabulary: str) -> Plan:
    """Give each name that differs between the vocabularies of its file the one chosen; changes the plan.

    Args:
        plan: The plan.
        vocabulary: The one chosen; a file that does not have it speaks its first.
    """
    for rule in plan['rules']:
        known: tuple[str, ...] = plan['files'][rule['file']]['vocabularies']
        if not known:
            continue
        word = vocabulary if vocabulary in known else known[0]
        named = [rule, *rule.get('labels', {}).values(), *rule.get('metrics', {}).values(), *rule.get('measures', ())]
        for each in named:
            name = each['name']
            if name and name[0] == 'word':
                each['name'] = name[1][word]
    return plan


def load(path: str, sha256: str, vocabulary: str = '') -> Plan:
    """Read a plan and check that it is the one the launcher meant.

    Args:
        path: The plan file.
        sha256: Its expected SHA-256, in hex. marshal must not see bytes that somebody else wrote.
        vocabulary: See `speak`.

    Raises:
        PlanError: The file is missing, unreadable, altered, or of another format.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        with open(descriptor, 'rb') as file:
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise PlanError('missing', path) from None
    except OSError as error:
        raise PlanError('unreadable', f'{path}: {error.strerror}') from None
    if sha256_hex(data) != sha256:
        raise PlanError('changed', f'{path} is not the plan the launcher wrote')
    return speak(parse(data), vocabulary)


def parse(data: bytes) -> Plan:
    """The plan in bytes that are known to come from `dump`.

    Raises:
        PlanError: They do not, or they come from another format of it.
    """
    start = len(_MAGIC)
    if data[:start] != _MAGIC or len(data) <= start:
        raise PlanError('not_a_plan', 'the file does not start as a plan does')
    if data[start] != FORMAT:
        raise PlanError('format', f'plan format {data[start]}, this agent reads format {FORMAT}')
    try:
        plan = marshal.loads(data[start + 1 :])
    except (EOFError, ValueError, TypeError):
        raise PlanError('not_a_plan', 'the plan ends early or holds unknown values') from None
    if not isinstance(plan, dict) or 'rules' not in plan or 'files' not in plan:
        raise PlanError('not_a_plan', 'the plan has no rules or no files')
    return plan  # pyright: ignore[reportUnknownVariableType]
