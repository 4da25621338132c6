# SPDX-License-Identifier: Apache-2.0
"""The journal's records: what each tuple holds, and how it is framed in a segment.

A segment is a file `<host>-<pid>-<start ticks>-<n>.jnl`. It is a row of frames: four bytes of length (little endian),
then `marshal.dumps(record, 2)`, filled up with zeros to a multiple of four, which the length counts and marshal
ignores. The payload is stored before its length, and the length in one store, so a length of 0 is the end of what is
there.
marshal version 2 reads the same on every Python we run on, holds ints of any size, and costs a third of a JSON encoder.
It is not safe against a hostile file: readers take only files of their own user from a 0700 folder.

Times are CLOCK_MONOTONIC nanoseconds (one clock for all processes of a node). Ids are bytes, 8 for a span and 16 for a
trace, b'' meaning none. A span that started inside a Ray task with nothing current, and all below it, has a trace field
of 24 bytes: the run's trace id, then the id of that first span. The collector puts the caller's trace in its place.
"""

from __future__ import annotations

FORMAT = 2
MARSHAL_VERSION = 2
SUFFIX = '.jnl'

# (HEADER, FORMAT, resource, wall_ns, mono_ns, boot_id, pid, start_ticks, n, flags): first record of every segment.
HEADER = 0
# (OPENED, span_id, trace_id, parent_id, t0, name, key, attributes | None, links | None)
OPENED = 1
# (ENDED, span_id, trace_id, parent_id, t0, duration_ns, name, key, status,
#  attributes | None, links | None, events | None): of the attributes those that its OPENED did not tell
ENDED = 2
# (POINT, t, name, instrument, unit, value, attributes | None, key, trace_id, span_id)
POINT = 3
# (LOG, t, severity_number, body, attributes | None, trace_id, span_id)
LOG = 4
# (ANCHOR, wall_ns, mono_ns): the wall clock again, so that a step of it shows.
ANCHOR = 5
# (RESOURCE, t, attributes): merged into the process's resource from here on.
RESOURCE = 6
# (REPORT, t, what, fields): the agent about itself; `what` is one of the words below.
REPORT = 7
# (CALLED, t, task_id, trace_id, span_id, what): the Ray task was submitted here while that span was current.
CALLED = 8
# (TASK, t, span_id, task_id, attempt): the span is a first one of that Ray task; stored before its own records.
TASK = 9

# How many fields a record of each kind has, the kind itself included: what differs is damage.
FIELDS = {
    HEADER: 10,
    OPENED: 9,
    ENDED: 12,
    POINT: 10,
    LOG: 7,
    ANCHOR: 3,
    RESOURCE: 3,
    REPORT: 4,
    CALLED: 6,
    TASK: 5,
}

# A link is (trace_id, span_id, attributes | None); an event is (t, name, attributes | None).
STATUS_UNSET = 0
STATUS_ERROR = 2

PATCHED = 'patched'  # {key, target, state}
UNPATCHED = 'unpatched'  # {key, target}
MISSING = 'missing'  # {key, target, reason}
NOT_INSTALLED = 'is not installed here'  # how the reason ends where the rule's whole file does not apply
FAULT = 'fault'  # {key, where, type, frames, count}
# {key: [calls, spans, errors, ns, over_budget, unread, filtered]}, cumulative since the process began
STATS = 'stats'
SEEN = 'seen'  # {key: (label pattern or metric key of the rule, ...)}: those that have occurred, cumulative
DROPPED = 'dropped'  # {records, reason}, cumulative
SETTINGS = 'settings'  # {field: value}, after a `resource` rule changed them
STOOD_DOWN = 'stood_down'  # {reason}
# {failed: True}?: the process goes on as another program; it follows once more, failed, if that cannot be
EXEC = 'exec'
REACH = 'reach'  # {workers: 'unreachable', reason}: workers of a cluster that this driver cannot bring our variables to
