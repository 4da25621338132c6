# SPDX-License-Identifier: Apache-2.0

import pytest

from lens_auto.launch.environment import with_entry

OURS = '/opt/lens auto/sitecustomize'


@pytest.mark.parametrize(
    ('before', 'after'),
    [
        (None, OURS),
        ('', OURS),
        ('/a', f'{OURS}:/a'),
        ('/with space:/b', f'{OURS}:/with space:/b'),
        (OURS, OURS),
        (f'{OURS}:/a', f'{OURS}:/a'),
        (f'/a:{OURS}:/b:{OURS}', f'{OURS}:/a:/b'),
        (f'/a:{OURS}/:/opt//lens auto/sitecustomize', f'{OURS}:/a'),
        (f'/b/a{OURS}:{OURS}x:{OURS}/x', f'{OURS}:/b/a{OURS}:{OURS}x:{OURS}/x'),
        ('relative:../up', f'{OURS}:relative:../up'),
        # An empty entry is the working directory to Python: the user's own stay, for better or worse.
        (':/a', f'{OURS}::/a'),
        ('/a:', f'{OURS}:/a:'),
        ('/a::/b', f'{OURS}:/a::/b'),
    ],
)
def test_the_users_part_stays_as_it_was(before: str | None, after: str) -> None:
    once = with_entry(before, OURS)
    assert once == after
    assert with_entry(with_entry(once, OURS), OURS) == after
