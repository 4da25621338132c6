# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lens_auto.report import otlp
from lens_auto.report.cli import main
from lens_auto.report.folder import load
from lens_auto.report.store import Store
from tests.unit.report.planted import BEGIN, MS, synchronous


def _span(number: int = 1, **more: Any) -> dict[str, Any]:
    return {
        'traceId': f'{7:032x}',
        'spanId': f'{number:016x}',
        'name': 'work',
        'startTimeUnixNano': str(BEGIN),
        'endTimeUnixNano': str(BEGIN + MS),
        **more,
    }


def _line(*spans: Any) -> bytes:
    scopes = [{'spans': list(spans)}]
    return json.dumps({'resourceSpans': [{'resource': {}, 'scopeSpans': scopes}]}).encode() + b'\n'


def _read(tmp_path: Path, data: bytes) -> Store:
    path = tmp_path / 'traces-a-1.jsonl'
    path.write_bytes(data)
    return load(str(path)).store


def test_a_torn_last_line_costs_itself_only(tmp_path: Path) -> None:
    store = _read(tmp_path, _line(_span(1)) + _line(_span(2))[:-40])
    assert len(store) == 1
    assert store.skipped == {'torn lines': 1}


def test_a_last_line_without_a_break_is_whole_when_it_is_json(tmp_path: Path) -> None:
    assert len(_read(tmp_path, _line(_span(1)) + _line(_span(2))[:-1])) == 2


def test_a_line_that_is_too_long_is_passed_over_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, 'LONGEST_LINE', 4096)
    monkeypatch.setattr(otlp, '_PIECE', 512)
    store = _read(tmp_path, _line(_span(1)) + b'{"resourceSpans": [' + b' ' * 100_000 + b'\n' + _line(_span(2)))
    assert len(store) == 2
    assert list(store.skipped.values()) == [1]


@pytest.mark.parametrize('many', [1, 40])
@pytest.mark.parametrize(
    'wrong',
    [
        {'spanId': None},
        {'spanId': 'zz' * 8},
        {'spanId': '1' * 15 + ' '},
        {'spanId': 17},
        {'spanId': '0' * 16},
        {'name': None},
        {'name': ['a']},
        {'startTimeUnixNano': 'soon'},
        {'startTimeUnixNano': '-5'},
        {'startTimeUnixNano': str(1 << 80), 'endTimeUnixNano': str(1 << 80)},
        {'startTimeUnixNano': {}},
        {'attributes': 7},
        {'attributes': [7]},
        {'attributes': [{'key': 'lens.group', 'value': {'intValue': '3'}}]},
        {'status': 'bad'},
    ],
    ids=str,
)
def test_a_span_of_wrong_types_costs_itself_only(tmp_path: Path, wrong: dict[str, Any], many: int) -> None:
    good = [_span(number) for number in range(10, 10 + many)]
    store = _read(tmp_path, _line(*good, {**_span(5), **wrong}, 'no span at all'))
    assert len(store) == many
    assert store.skipped == {'spans of wrong types': 2}


def test_a_span_that_ends_before_it_starts_has_no_length(tmp_path: Path) -> None:
    store = _read(tmp_path, _line(_span(1, endTimeUnixNano=str(BEGIN - MS))))
    assert list(store.rows()['end'] - store.rows()['start']) == [0]


def test_a_span_that_occurs_twice_counts_once_and_whole_rather_than_cut_short(tmp_path: Path) -> None:
    cut = [{'key': 'lens.truncated', 'value': {'boolValue': True}}]
    path = tmp_path / 'a.jsonl'
    path.write_bytes(_line(_span(1, attributes=cut), _span(2)) + _line(_span(1)))
    tree = load(str(path)).tree
    assert (len(tree.rows), tree.duplicates) == (2, 1)
    assert not tree.rows['flags'].any()


def test_spans_that_enclose_each_other_are_roots(tmp_path: Path) -> None:
    path = tmp_path / 'a.jsonl'
    path.write_bytes(_line(_span(1, parentSpanId=f'{2:016x}'), _span(2, parentSpanId=f'{1:016x}')))
    tree = load(str(path)).tree
    assert list(tree.parent) == [-1, -1]


def test_a_chain_deeper_than_any_program_is_cut(tmp_path: Path) -> None:
    path = tmp_path / 'a.jsonl'
    path.write_bytes(_line(*(_span(n, parentSpanId=f'{n - 1:016x}') for n in range(1, 5000))))
    assert len(load(str(path)).tree.levels) <= 66


def test_base64_ids_and_snake_case_are_read(tmp_path: Path) -> None:
    def b64(number: int, size: int) -> str:
        return base64.b64encode(number.to_bytes(size, 'big')).decode()

    other = {
        'trace_id': b64(7, 16),
        'span_id': b64(2, 8),
        'parent_span_id': b64(1, 8),
        'name': 'inner',
        'start_time_unix_nano': BEGIN,
        'end_time_unix_nano': BEGIN + MS,
    }
    scopes = [{'spans': [other]}]
    snake = json.dumps({'resource_spans': [{'scope_spans': scopes}]}).encode() + b'\n'
    path = tmp_path / 'a.json'
    path.write_bytes(_line(_span(1)) + snake)
    tree = load(str(path)).tree
    assert sorted(tree.parent) == [-1, 0]


def test_a_name_moves_no_cursor_and_opens_no_tag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = '\x1b[2J\x07</script><script>alert(1)</script>[bold]\r\n'
    path = tmp_path / 'a.jsonl'
    path.write_bytes(_line(_span(1, name=evil)))
    assert main([str(path)]) == 0
    shown = capsys.readouterr().out
    assert '\x1b' not in shown and '\x07' not in shown
    assert '\\x1b[2J' in shown


def test_reordered_lines_give_the_same_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = synchronous(steps=6).write(tmp_path, batch=5)
    (path,) = folder.iterdir()
    listed = path.read_bytes().splitlines(keepends=True)
    answers: list[Any] = []
    for lines in (listed, listed[::-1]):
        path.write_bytes(b''.join(lines))
        assert main(['steps', '--json', str(path)]) == 0
        answers.append([{**one, 'row': 0} for one in json.loads(capsys.readouterr().out)])
    assert answers[0] == answers[1]


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400))
def test_no_bytes_raise(data: bytes) -> None:
    store = Store()
    for line in data.split(b'\n'):
        otlp.take(line, store)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ['resource', 'attributes', 'key', 'value', 'scopeSpans', 'spans', 'spanId', 'name', 'status', 'metrics']
                + ['scopeMetrics', 'gauge', 'dataPoints', 'asDouble', 'timeUnixNano', 'stringValue', 'intValue']
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(['resourceSpans', 'resourceMetrics', 'resourceLogs']), _JSON)
def test_no_json_raises(kind: str, inner: Any) -> None:
    otlp.take(json.dumps({kind: [inner] if not isinstance(inner, list) else inner}).encode(), Store())


def test_what_is_no_run_is_said_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / 'notes.txt').write_text('hello\n')
    for given_, word in (
        (tmp_path / 'nothing', 'neither a run folder nor a file'),
        (tmp_path, 'holds no run'),
    ):
        assert main([str(given_)]) == 2
        said = capsys.readouterr().err
        assert said.startswith('lens-report: ') and word in said and 'Traceback' not in said


def test_a_damaged_archive_gives_what_comes_before_the_damage(tmp_path: Path) -> None:
    whole = gzip.compress(b''.join(_line(_span(n)) for n in range(1, 3000)), mtime=0)
    for name, data in (('cut.jsonl.gz', whole[: len(whole) // 2]), ('bad.jsonl.gz', whole[:2000] + b'\xff' * 3000)):
        path = tmp_path / name
        path.write_bytes(data)
        store = load(str(path)).store
        assert 0 < len(store) < 2999
        assert store.skipped['damaged files'] == 1
