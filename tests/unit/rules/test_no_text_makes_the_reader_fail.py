# SPDX-License-Identifier: Apache-2.0
"""Whatever a file holds, what comes back is a model or the list of its faults."""

from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lens_auto.rules.compile import compile_files
from lens_auto.rules.document import parse
from lens_auto.rules.errors import RuleErrors
from lens_auto.rules.model import FILE_KEYS, KINDS, LABEL_KEYS, METRIC_KEYS, VAR_KEYS
from lens_auto.rules.plan import dump
from lens_auto.rules.validate import validate

GOOD = (Path(__file__).resolve().parents[3] / 'examples' / 'lens.yaml').read_text()
KEYS = st.sampled_from(
    sorted({*FILE_KEYS, *LABEL_KEYS, *METRIC_KEYS, *VAR_KEYS, *(key for keys in KINDS.values() for key in keys)})
)
SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        [*KINDS, 'loop', 'm:f', 'm:T.a/b', 'step', 'per_step', 'drop', '*', 'rl.{label}', 'arg.x', 'x', 't>=1']
    ),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.one_of(KEYS, st.text(max_size=3)), inner)),
    max_leaves=8,
)
RULES = st.lists(st.dictionaries(KEYS, VALUES, max_size=6) | VALUES, max_size=3)


def attempt(text: str) -> None:
    try:
        model = validate(parse(text, 'x.yaml'), 'x.yaml', '/x.yaml')
    except RuleErrors as errors:
        assert errors.errors
        for error in errors.errors:
            assert error.line >= 1
            assert error.column >= 1
            assert error.hints
    else:
        dump(compile_files([model], '1'))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    attempt(text)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, len(GOOD)), st.integers(0, 30), st.text(max_size=4) | st.sampled_from(['\t', '{', ': ', '- ', '*a'])
)
def test_a_good_file_with_a_stretch_replaced(start: int, length: int, put: str) -> None:
    attempt(GOOD[:start] + put + GOOD[start + length :])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(KEYS, VALUES, max_size=5), RULES, st.dictionaries(KEYS, VALUES, max_size=2))
def test_any_values_under_the_known_keys(top: dict[str, Any], rules: list[Any], names: dict[str, Any]) -> None:
    attempt(yaml.safe_dump({**top, 'framework': 't', 'vars': names, 'rules': rules}))
