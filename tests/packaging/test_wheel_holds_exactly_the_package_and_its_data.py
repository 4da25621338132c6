# SPDX-License-Identifier: Apache-2.0

import zipfile
from pathlib import Path


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if '.dist-info/' not in name}


def test_wheel_holds_exactly_the_package_and_its_data(source: Path, wheel: Path) -> None:
    modules = {str(path.relative_to(source)) for path in (source / 'lens_auto').rglob('*.py')}
    rules = {f'lens_auto/_data/rules/{path.name}' for path in (source / 'rules').iterdir()}

    assert contents(wheel).keys() == {
        *modules,
        *rules,
        'lens_auto/py.typed',
        'lens_auto/_data/sitecustomize/sitecustomize.py',
    }


def test_wheel_of_the_sdist_is_the_wheel_of_the_tree(wheel: Path, wheel_from_tree: Path) -> None:
    assert contents(wheel) == contents(wheel_from_tree)
