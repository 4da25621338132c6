# SPDX-License-Identifier: Apache-2.0
"""The `when:` of a rule file: is the framework here, in a version the file was written for?"""

import pytest

from lens_auto.hook.when import reason_off, satisfies


@pytest.mark.parametrize(
    ('found', 'wanted', 'expected'),
    [
        ('1.2.3', '>=1', True),
        ('1.2.3', '>=1.2.3,<1.3', True),
        ('1.10', '>1.9', True),
        ('1.2', '==1.2.0', True),
        ('1.2', '!=1.2', False),
        ('0.4.1rc2', '>=0.4.1', True),
        ('2.0.0+cu121', '<2.0.1', True),
        ('1.2', '~=1.0', False),
        ('unknown', '>=1', False),
    ],
)
def test_comparisons_are_by_number(found: str, wanted: str, expected: bool) -> None:
    assert satisfies(found, wanted) is expected


def test_the_reason_names_what_is_missing() -> None:
    assert reason_off(None, bool) is None
    assert reason_off({'module': 'x', 'version': None}, lambda name: False) == 'x is not installed here'
    assert reason_off({'module': 'x', 'version': None}, lambda name: True) is None
    assert reason_off({'module': 'pytest', 'version': '>=1'}, lambda name: True) is None
    assert (reason_off({'module': 'pytest', 'version': '<1'}, lambda name: True) or '').endswith('is not <1')
    assert 'no version' in (reason_off({'module': 'no_such_thing', 'version': '<1'}, lambda name: True) or '')
