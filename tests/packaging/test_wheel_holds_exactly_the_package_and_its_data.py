# SPDX-License-Identifier: Apache-2.0

import zipfile
from pathlib import Path

from tests.packaging.conftest import Installed


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if '.dist-info/' not in name}


def test_wheel_holds_exactly_the_package_and_its_data(source: Path, wheel: Path) -> None:
    modules = {str(path.relative_to(source)) for path in (source / 'lens_auto').rglob('*.py')}
    rules = {f'lens_auto/_data/rules/{path.name}' for path in (source / 'rules').iterdir()}
    plans = {name.replace('.yaml', '.plan') for name in rules if name.endswith('.yaml')}

    assert contents(wheel).keys() == {
        *modules,
        *rules,
        *plans,
        'lens_auto/py.typed',
        *(f'lens_auto/report/page.{kind}' for kind in ('html', 'css', 'js')),
        'lens_auto/_data/sitecustomize/sitecustomize.py',
    }


def test_wheel_of_the_sdist_is_the_wheel_of_the_tree(wheel: Path, wheel_from_tree: Path) -> None:
    assert contents(wheel) == contents(wheel_from_tree)


BUILD = """
import sys
from lens_auto.rules import finding, plan_build
sources = finding.sources((), {}, ['true'], ())
rules = plan_build.build(sources, '0').plan['rules']
print(len(rules), 'yaml' in sys.modules, 'importlib.metadata' in sys.modules)
"""


def test_the_first_launch_of_a_wheel_parses_no_yaml(installed: Installed, tmp_path: Path) -> None:
    done = installed.run('python', '-c', BUILD, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rules, yaml, metadata = done.stdout.split()
    assert int(rules) > 100
    assert yaml == str(installed.kind == 'editable')
    assert metadata == 'False'
