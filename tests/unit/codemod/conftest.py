# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from lens_auto.codemod.cli import main


class Desk:
    """A working directory with a rule file, some sources, and the command.

    Args:
        folder: An empty folder.
        captured: Gives what was printed.
    """

    def __init__(self, folder: Path, captured: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._captured = captured

    def put(self, rules: str, files: Mapping[str, str]) -> None:
        text = f'framework: mine\nrules:\n{textwrap.dedent(rules)}'
        for name, content in {'lens.yaml': text, **files}.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        self._captured.readouterr()
        code = main(arguments)
        out, said = self._captured.readouterr()
        return code, out, said

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def body(self, name: str) -> str:
        """A file's text without the import block."""
        head, _, rest = self.text(name).partition('# lens-codemod: begin')
        return (head + rest.partition('# lens-codemod: end\n')[2]) if rest else head


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv('LENS_RULES', raising=False)
    return Desk(tmp_path, capsys)
