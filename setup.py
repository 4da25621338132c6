# SPDX-License-Identifier: Apache-2.0
"""What pyproject.toml cannot say: a wheel has its built-in rule files compiled."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithPlans(build_py):
    """Compiles the rule files of the build; an editable install reads them as they are."""

    def run(self) -> None:
        """See `build_py`."""
        super().run()
        if self.editable_mode:
            return
        sys.path.insert(0, str(Path(__file__).parent))
        from lens_auto.rules import precompiled

        for file in sorted(Path(self.build_lib, 'lens_auto', '_data', 'rules').glob('*.yaml')):
            precompiled.write(str(file))


setup(cmdclass={'build_py': BuildWithPlans})
