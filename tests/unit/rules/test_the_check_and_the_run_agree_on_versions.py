# SPDX-License-Identifier: Apache-2.0

import itertools

from lens_auto.hook.when import satisfies
from lens_auto.rules.version_range import contains

VERSIONS = ('0.3', '0.3.0', '0.10', '1', '1.0rc1', '1.0.post2', '2.1+cu124', '2.1.dev3', 'unknown')
LIMITS = ('>=0.3', '>=0.3,<1', '==1.0', '!=2.1', '<=0.3.0', '>1', '>=1, <2.1')


def test_the_check_and_the_run_agree_on_versions() -> None:
    for version, limits in itertools.product(VERSIONS, LIMITS):
        assert contains(limits, version) == satisfies(version, limits), (version, limits)
    assert contains('>=0.3,<1', '0.10')
    assert not contains('>=0.3,<1', '1.0rc1')
