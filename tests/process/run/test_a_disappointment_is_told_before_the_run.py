# SPDX-License-Identifier: Apache-2.0
"""What would only be learnt at the end of a long run is said at its start."""

from __future__ import annotations

import pytest

from lens_auto.launch import foresight
from tests.helpers.run import Place

RULES = """
framework: solo
rules:
- {kind: function, target: solo:fit, group: job, name: rl.solo.job}
"""


def test_rules_on_the_script_itself_reach_nothing(place: Place) -> None:
    place.write({'solo.py': 'def fit(): print("done")\nfit()\n', 'solo.yaml': RULES})
    done = place.lens('--rules', 'solo.yaml', 'python', 'solo.py')
    assert (done.code, done.stdout) == (0, 'done\n')
    said = 'solo.py is the script itself: rules on the module `solo` reach nothing in it'
    assert said in done.stderr and done.stderr.index(said) < done.stderr.index('recording to')


def test_nothing_is_said_of_a_script_that_no_rule_names(place: Place) -> None:
    assert 'the script itself' not in place.lens('python', 'train.py').stderr


@pytest.mark.parametrize('exporter, told', [('otlp', True), ('file', False)])
def test_a_missing_sdk_is_known_before(monkeypatch: pytest.MonkeyPatch, exporter: str, told: bool) -> None:
    class Settings:
        def value(self, name: str) -> str:
            return exporter

    monkeypatch.setattr(foresight, '_sdk_is_here', lambda: False)
    warnings = foresight.warnings(Settings(), (), ('python', '-c', 'pass'))  # type: ignore[arg-type]
    assert ["pip install 'lens-auto[otlp]'" in line for line in warnings] == [True] * told


def test_the_sdk_of_this_environment_is_found() -> None:
    assert foresight._sdk_is_here()
