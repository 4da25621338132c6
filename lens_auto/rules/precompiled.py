# SPDX-License-Identifier: Apache-2.0
"""Built-in rule files as plans: a wheel has each compiled already, so that a user's first launch parses no YAML.

`python -m lens_auto.rules.precompiled FILE...` writes `<name>.plan` beside each file; the build of a wheel does. A plan
names the text it was made from, so that one that is left over, or of another version, is not used.
"""

from __future__ import annotations

import os
import sys

from . import plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def load(path: str) -> dict[str, Any] | None:
    """The plan of a built-in rule file, or None where there is none that fits it.

    Args:
        path: The rule file.
    """
    try:
        with open(_beside(path), 'rb') as file:
            found = plan.parse(file.read())
        with open(path, 'rb') as file:
            text = file.read()
    except (OSError, plan.PlanError):
        return None
    if found.get('source') != plan.sha256_hex(text):
        return None
    found['files'][0]['path'] = path
    return found


def write(path: str) -> None:
    """Compile a rule file and store its plan beside it.

    Args:
        path: The rule file.

    Raises:
        RuleErrors: All that is wrong with it.
    """
    from .compile import compile_file
    from .validate import read_file

    with open(path, 'rb') as file:
        source = plan.sha256_hex(file.read())
    # Wherever it is built, the same bytes.
    compiled = compile_file(read_file(path)._replace(path=''))
    with open(_beside(path), 'wb') as file:
        file.write(plan.dump({**compiled, 'source': source}))


def _beside(path: str) -> str:
    return f'{os.path.splitext(path)[0]}.plan'


def main(arguments: Sequence[str]) -> int:
    """Compile the files named."""
    for path in arguments:
        write(path)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
