# SPDX-License-Identifier: Apache-2.0

import re
from pathlib import Path

import pytest

OURS = re.compile(
    r"""bin/lens-(codemod|instrument|report|rules)$
      | lib/python[\d.]+/site-packages/(
            lens_auto(-[\d.]+\.dist-info)?/
          | __editable__[\w.]*lens_auto     # the finder of an editable install and the line that loads it
        )""",
    re.VERBOSE,
)
DEPENDENCY = re.compile(r'lib/python[\d.]+/site-packages/(_?yaml|pyyaml-[\d.]+\.dist-info)/', re.IGNORECASE)
NAMES_OF_THE_REPOSITORY = ['rules', 'sitecustomize', 'examples', 'tests', 'bench', 'docs']


def test_no_file_of_the_venv_changes_and_only_ours_and_pyyaml_come(installed) -> None:
    kept = {path: installed.files_after.get(path) for path in installed.files_before}
    added = installed.files_after.keys() - installed.files_before.keys()

    assert kept == installed.files_before
    assert sorted(path for path in added if not OURS.match(path) and not DEPENDENCY.match(path)) == []


@pytest.mark.parametrize('installed', ['wheel'], indirect=True)
def test_a_python_of_the_venv_that_is_not_traced_starts_as_before(installed) -> None:
    assert installed.start_after == installed.start_before


@pytest.mark.parametrize('installed', ['editable'], indirect=True)
def test_an_editable_install_adds_the_finder_of_setuptools_and_no_folder_to_the_path(installed) -> None:
    before, after = installed.start_before, installed.start_after

    assert [finder for finder in after['finders'] if '__editable__' not in finder] == before['finders']
    assert [entry for entry in after['path'] if entry not in before['path'] and Path(entry).exists()] == []


@pytest.mark.parametrize('name', NAMES_OF_THE_REPOSITORY)
def test_folders_of_the_repository_do_not_become_importable(installed, name: str, tmp_path: Path) -> None:
    done = installed.run('python', '-c', f'import {name}', cwd=tmp_path)

    assert done.stderr.endswith(f"ModuleNotFoundError: No module named '{name}'\n")
