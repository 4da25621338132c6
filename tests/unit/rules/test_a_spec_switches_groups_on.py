# SPDX-License-Identifier: Apache-2.0

from typing import Any

import pytest

from lens_auto.rules.registry import GROUPS, PRESETS
from lens_auto.rules.selection import UnknownGroup, select, select_all

FILE: dict[str, Any] = {'groups': {name: {} for name in GROUPS}, 'presets': PRESETS}
OWN: dict[str, Any] = {'groups': {'step': {}, 'mine': {}}, 'presets': {'quick': ('mine',), 'all': '*'}}


def test_groups_presets_and_unions() -> None:
    assert select('job', FILE) == {'job'}
    assert select('default', FILE) == {'job', 'checkpoint', 'evaluate', 'setup', 'model_init'}
    assert select('all', FILE) == set(GROUPS)
    assert select(' per_step , job,', FILE) == {*PRESETS['per_step'], 'job'}
    assert 'job' not in select('per_step', FILE)
    assert select('', FILE) == frozenset()


def test_a_token_need_only_be_known_to_one_file() -> None:
    assert select_all('job,mine,step', (FILE, OWN)) == ({'job', 'step'}, {'mine', 'step'})
    assert select_all('quick,all', (FILE, OWN)) == (set(GROUPS), {'step', 'mine'})
    with pytest.raises(UnknownGroup):
        select('mine', FILE)


def test_an_unknown_group_names_the_known_ones() -> None:
    with pytest.raises(UnknownGroup) as raised:
        select_all('per_step,rolout', (FILE, OWN))
    assert (raised.value.token, raised.value.nearest()) == ('rolout', 'rollout')
    assert raised.value.groups == tuple(sorted({*GROUPS, 'mine'}))
    assert raised.value.presets == ('all', 'default', 'per_step', 'quick')


def test_without_any_file_the_built_in_names_count() -> None:
    assert select_all('per_step,generation', ()) == ()
    with pytest.raises(UnknownGroup):
        select_all('rolout', ())
