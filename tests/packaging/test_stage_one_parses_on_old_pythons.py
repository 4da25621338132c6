# SPDX-License-Identifier: Apache-2.0

import ast
from pathlib import Path

STAGE_ONE = Path(__file__).parents[2] / 'sitecustomize' / 'sitecustomize.py'


def test_stage_one_parses_as_python_3_6() -> None:
    # A worker's Python may be older than ours: there stage 1 has to stand down, which takes parsing first.
    ast.parse(STAGE_ONE.read_text(), STAGE_ONE.name, feature_version=(3, 6))
