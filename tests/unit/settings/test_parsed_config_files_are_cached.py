# SPDX-License-Identifier: Apache-2.0
import os
import stat
import time
from pathlib import Path

import pytest

from lens_auto.settings import document
from lens_auto.settings.resolve import resolve

SETTLED = 0.05  # seconds until a file is old enough to be told from its next change


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What had to be parsed."""
    seen: list[bytes] = []
    parse = document.parse

    def counted(data: bytes, names: frozenset[str], whole: bool) -> object:
        seen.append(data)
        return parse(data, names, whole)

    monkeypatch.setattr(document, 'parse', counted)
    return seen


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / 'base.yaml').write_text('telemetry: {export_rank: 1, otlp_headers: s3cret}\n')
    file = tmp_path / 'grpo.yaml'
    file.write_text('defaults: base.yaml\ntelemetry: {service_name: one}\n')
    time.sleep(SETTLED)
    return file


def read(config: Path, cache: Path) -> tuple[object, object, list[str]]:
    resolved = resolve({}, {}, ['python', 'a.py', '--config', str(config)], None, [], str(cache))
    return resolved.value('service_name'), resolved.value('export_rank'), resolved.announcements


def test_the_second_read_parses_nothing_and_says_the_same(config: Path, tmp_path: Path, parsed: list[bytes]) -> None:
    cold = read(config, tmp_path / 'cache')
    assert len(parsed) == 2
    assert read(config, tmp_path / 'cache') == cold
    assert len(parsed) == 2


@pytest.mark.parametrize('changed', ['grpo.yaml', 'base.yaml'])
def test_a_changed_file_of_the_chain_is_read_again(
    changed: str, config: Path, tmp_path: Path, parsed: list[bytes]
) -> None:
    before = read(config, tmp_path / 'cache')[:2]
    file = tmp_path / changed
    times = file.stat()
    # Same size, same modification time.
    file.write_text(file.read_text().replace('one', 'two').replace('export_rank: 1', 'export_rank: 8'))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    after = read(config, tmp_path / 'cache')[:2]
    assert (before, after) == (('one', 1), ('two', 1) if changed == 'grpo.yaml' else ('one', 8))


def test_the_cache_is_private_and_holds_no_value_of_an_unknown_key(config: Path, tmp_path: Path) -> None:
    read(config, tmp_path / 'cache')
    entries = sorted((tmp_path / 'cache').iterdir())

    assert len(entries) == 2
    assert stat.S_IMODE((tmp_path / 'cache').stat().st_mode) == 0o700
    assert {stat.S_IMODE(entry.stat().st_mode) for entry in entries} == {0o600}
    assert not any(b's3cret' in entry.read_bytes() for entry in entries)


def test_a_damaged_entry_is_parsed_again(config: Path, tmp_path: Path, parsed: list[bytes]) -> None:
    expected = read(config, tmp_path / 'cache')
    for damage in (b'', b'\x00', b'i\x01\x00\x00\x00', b'(\x02\x00\x00\x00NN'):
        for entry in (tmp_path / 'cache').iterdir():
            entry.write_bytes(damage)
        assert read(config, tmp_path / 'cache') == expected
    assert len(parsed) == 2 * 5


def test_a_folder_others_can_write_or_a_link_is_not_used(config: Path, tmp_path: Path, parsed: list[bytes]) -> None:
    (tmp_path / 'open').mkdir()
    (tmp_path / 'open').chmod(0o770)
    (tmp_path / 'private').mkdir(mode=0o700)
    (tmp_path / 'link').symlink_to(tmp_path / 'private')
    for folder in ('open', 'link', 'grpo.yaml', 'grpo.yaml/below'):
        read(config, tmp_path / folder)
        assert read(config, tmp_path / folder)[0] == 'one'
    assert list((tmp_path / 'open').iterdir()) == list((tmp_path / 'private').iterdir()) == []
    assert len(parsed) == 4 * 2 * 2


def test_an_entry_that_is_a_link_is_not_followed(config: Path, tmp_path: Path, parsed: list[bytes]) -> None:
    read(config, tmp_path / 'cache')
    for entry in list((tmp_path / 'cache').iterdir()):
        target = entry.rename(tmp_path / entry.name)
        entry.symlink_to(target)
    read(config, tmp_path / 'cache')
    assert len(parsed) == 4
