# SPDX-License-Identifier: Apache-2.0

import re
from pathlib import Path


def test_lens_instrument_prints_the_installed_version(installed, tmp_path: Path) -> None:
    (metadata,) = installed.prefix.glob('lib/python*/site-packages/lens_auto-*.dist-info')
    version = re.search(r'lens_auto-(.*)\.dist-info', metadata.name)

    done = installed.run('lens-instrument', '--version', cwd=tmp_path)

    assert version is not None
    assert (done.returncode, done.stdout, done.stderr) == (0, f'lens-instrument {version[1]}\n', '')


def test_lens_rules_prints_its_usage(installed, tmp_path: Path) -> None:
    done = installed.run('lens-rules', '--help', cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, '')
    assert 'usage: lens-rules' in done.stdout


def test_lens_rules_fails_with_a_code_when_it_does_not_know_the_command(installed, tmp_path: Path) -> None:
    done = installed.run('lens-rules', 'polish', cwd=tmp_path)

    assert done.returncode == 2
    assert 'polish' in done.stderr


def test_lens_codemod_says_what_it_needs(installed, tmp_path: Path) -> None:
    done = installed.run('lens-codemod', 'list', '.', cwd=tmp_path)

    said = 'lens-codemod: libcst is not installed: pip install "lens-auto[codemod]"\n'
    assert (done.returncode, done.stdout, done.stderr) == (2, '', said)


def test_lens_report_says_what_it_needs(installed, tmp_path: Path) -> None:
    done = installed.run('lens-report', cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, '')
    assert "lens-report: numpy is not installed here\n    pip install 'lens-auto[report]'" in done.stderr
