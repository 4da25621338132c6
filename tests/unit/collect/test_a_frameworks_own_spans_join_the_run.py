# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import _thread
import gzip
import os
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags, set_span_in_context
from opentelemetry.trace.span import TraceState

from lens_auto.collect import received
from lens_auto.collect.receiver import Receiver
from tests.unit.collect.journals import Lab, span_of, trace_of

CALLER, TASK = 7, 12


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    made.start()
    yield made
    made.close()


def sent(pid: int | None, state: str = '', trace: int = 99, attributes: Any = None) -> bytes:
    """What vLLM sends of one request, made by the exporter it uses: below span CALLER of a trace."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(
        resource=Resource({'vllm.process_id': str(pid), 'vllm.process_kind': 'core'} if pid else {})
    )
    provider.add_span_processor(SimpleSpanProcessor(kept))
    above = SpanContext(trace, CALLER, True, TraceFlags(1), TraceState.from_header([state]) if state else TraceState())
    tracer = provider.get_tracer('vllm')
    with tracer.start_as_current_span('llm_request', set_span_in_context(NonRecordingSpan(above))) as span:
        span.set_attributes({'a': 'text', 'b': 2, 'c': -0.5, 'd': True, 'e': -3, 'f': ('x', 'y')} | (attributes or {}))
        span.add_event('seen', {'n': 1})
        span.add_link(above, {'why': 'because'})
        span.set_status(Status(StatusCode.ERROR, 'its text stays there'))
    return encode_spans(kept.get_finished_spans()).SerializeToString()


def post(url: str, body: bytes, **headers: str) -> int:
    request = urllib.request.Request(url, body, {'Content-Type': 'application/x-protobuf', **headers})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_what_the_sdk_sends_is_read_field_by_field(receiver: Receiver) -> None:
    assert post(receiver.endpoint + '/v1/traces', sent(None)) == 200
    [span] = receiver.taken()
    assert (span.name, span.trace_id, span.parent_id) == ('llm_request', trace_of(99), span_of(CALLER))
    assert span.attributes == {'a': 'text', 'b': 2, 'c': -0.5, 'd': True, 'e': -3}  # a sequence is no scalar
    assert [(name, items) for _, name, items in span.events] == [('seen', {'n': 1})]
    assert span.links == [(trace_of(99), span_of(CALLER), {'why': 'because'})]
    assert span.status == 2
    assert span.start <= span.events[0][0] <= span.end
    assert receiver.taken() == []


def test_packed_bodies_are_read_too(receiver: Receiver) -> None:
    assert post(receiver.endpoint + '/v1/traces', gzip.compress(sent(None)), **{'Content-Encoding': 'gzip'}) == 200
    assert len(receiver.taken()) == 1


def test_only_who_knows_the_path_is_heard_and_only_on_loopback(receiver: Receiver) -> None:
    host, _, _ = receiver.endpoint.partition('//')[2].partition('/')
    assert post(f'http://{host}/v1/traces', sent(None)) == 404
    assert post(f'http://{host}/{"0" * 32}/v1/traces', sent(None)) == 404
    assert receiver.taken() == []
    assert host.startswith('127.0.0.1:')


def test_nonsense_is_refused_and_counted_and_the_next_one_is_read(receiver: Receiver) -> None:
    url = receiver.endpoint + '/v1/traces'
    assert [post(url, b'\xff' * 40), post(url, b'not gzip', **{'Content-Encoding': 'gzip'})] == [400, 400]
    assert post(url, sent(None)) == 200
    assert (receiver.damaged, len(receiver.taken())) == (2, 1)


def test_a_body_that_would_unpack_to_gigabytes_is_refused(receiver: Receiver) -> None:
    bomb = gzip.compress(b'\0' * (32 << 20))
    assert post(receiver.endpoint + '/v1/traces', bomb, **{'Content-Encoding': 'gzip'}) == 400


@given(some.binary(max_size=200), some.integers(0, 400))
def test_no_bytes_bring_the_reader_down(noise: bytes, cut: int) -> None:
    for data in (noise, WHOLE[:cut] + noise, WHOLE[: max(0, len(WHOLE) - cut)]):
        try:
            received.spans(data)
        except received.Damaged:
            pass


WHOLE = sent(1)


class Came:
    """A receiver to which everything has been sent already."""

    def __init__(self, *bodies: bytes) -> None:
        self.waiting = [span for body in bodies for span in received.spans(body)]

    def taken(self) -> list[received.Received]:
        waiting, self.waiting = self.waiting, []
        return waiting

    def start(self) -> None: ...

    def close(self) -> None: ...


def collected(lab: Lab, *bodies: bytes) -> dict[str, Any]:
    collector = lab.collector(live=False)
    came: Any = Came(*bodies)
    collector.reading.receive(came)
    collector.drain()
    return lab.spans()


def test_a_span_is_its_senders_own_and_below_the_span_that_asked(lab: Lab) -> None:
    journal = lab.journal(told={'lens.role': 'vllm engine core'})
    journal.end_span(CALLER, 'rl.vllm.request', trace=99)
    span = collected(lab, sent(journal.pid))['llm_request']
    assert (span['traceId'], span['parentSpanId']) == (trace_of(99).hex(), span_of(CALLER).hex())
    assert span['status']['code'] == 2
    assert 'its text stays there' not in str(span)
    attributes = {item['key']: item['value'] for item in span['attributes']}
    assert attributes['a'] == {'stringValue': 'text'}
    assert attributes['vllm.process_kind'] == {'stringValue': 'core'}
    assert 'vllm.process_id' not in attributes  # its resource has it


def test_a_sender_without_a_journal_is_a_process_of_its_own(lab: Lab) -> None:
    lab.journal().end_span(1, 'step')
    assert collected(lab, sent(4_000_001), sent(None, attributes={'b': 3}))['llm_request']['name'] == 'llm_request'


def test_below_a_ray_task_it_gets_the_callers_trace(lab: Lab) -> None:
    driver = lab.journal()
    driver.open(1, 'step')
    driver.called(b'task one', 1)
    driver.end_span(1, 'step')
    worker = lab.journal(told={'lens.role': 'process'})
    below = trace_of(99) + span_of(TASK)
    worker.task(TASK, b'task one', 0)
    worker.end_span(CALLER, 'rl.vllm.request', parent=TASK, trace=below)
    worker.end_span(TASK, 'task', parent=lab.run.root_span_id, trace=below)
    span = collected(lab, sent(worker.pid, f'lens={span_of(TASK).hex()}'))['llm_request']
    assert (span['traceId'], span['parentSpanId']) == (lab.spans()['step']['traceId'], span_of(CALLER).hex())


def test_a_socket_that_says_nothing_holds_up_nobody(receiver: Receiver) -> None:
    host, _, port = receiver.endpoint.partition('//')[2].partition('/')[0].partition(':')
    with socket.create_connection((host, int(port))):
        assert post(receiver.endpoint + '/v1/traces', sent(None)) == 200


def test_the_listener_is_not_handed_to_children(receiver: Receiver) -> None:
    assert not os.get_inheritable(receiver.fileno())


def test_closed_at_any_moment_its_thread_ends_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    monkeypatch.setattr(sys, 'unraisablehook', heard.append)
    before = _thread._count()
    for pause in [0.0, 0.0, 0.001, 0.01] * 25:
        made = Receiver()
        made.start()
        time.sleep(pause)
        made.close()
    deadline = time.monotonic() + 10
    while _thread._count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert _thread._count() <= before
    assert heard == []
