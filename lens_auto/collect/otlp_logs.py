# SPDX-License-Identifier: Apache-2.0
"""Log records of OTLP JSON lines, as the SDK's exporters take them: their class has changed between its versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry._logs import SeverityNumber
from opentelemetry.sdk import _logs
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import TraceFlags

if TYPE_CHECKING:
    from collections.abc import Sequence

    Json = dict[str, Any]

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


def logs(plain: Json) -> list[Any]:
    """The log records of an OTLP JSON object.

    Args:
        plain: With `resourceLogs`.
    """
    found: list[Any] = []
    for group in plain['resourceLogs']:
        resource = Resource(_attributes(group['resource'].get('attributes')))
        for scoped in group['scopeLogs']:
            scope = InstrumentationScope(scoped['scope']['name'], scoped['scope'].get('version'))
            found += [_made(_fields(one), resource, scope) for one in scoped['logRecords']]
    return found


def _fields(one: Json) -> Json:
    body: Json = one.get('body') or {}
    found: Json = {
        'timestamp': int(one['timeUnixNano']),
        'observed_timestamp': int(one['observedTimeUnixNano']),
        'severity_number': SeverityNumber(one['severityNumber']),
        'severity_text': one.get('severityText'),
        'body': body.get('stringValue'),
        'attributes': _attributes(one.get('attributes')),
        'trace_id': int(one.get('traceId', '0'), 16),
        'span_id': int(one.get('spanId', '0'), 16),
    }
    found['trace_flags'] = _SAMPLED if found['span_id'] else TraceFlags(TraceFlags.DEFAULT)
    return found


def _made(fields: Json, resource: Resource, scope: InstrumentationScope) -> Any:
    sdk: Any = _logs
    if hasattr(sdk, 'ReadableLogRecord'):
        from opentelemetry._logs import LogRecord

        return sdk.ReadableLogRecord(LogRecord(**fields), resource, scope)
    return sdk.LogData(sdk.LogRecord(**fields, resource=resource), scope)


def _attributes(listed: Sequence[Json] | None) -> Json:
    found: Json = {}
    for item in listed or ():
        [(kind, value)] = item['value'].items()
        found[item['key']] = int(value) if kind == 'intValue' else value
    return found
