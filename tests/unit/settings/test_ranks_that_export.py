# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from lens_auto.settings.exports import exports
from lens_auto.settings.project import from_environment


def exporting(world: int, settings: dict[str, str], run: str = 'run-1') -> list[int]:
    """The ranks of a job that export."""
    values = from_environment({f'LENS_{name.upper()}': text for name, text in settings.items()})
    return [
        rank
        for rank in range(world)
        if exports(
            values,
            {
                'RANK': str(rank),
                'WORLD_SIZE': str(world),
                'LOCAL_RANK': str(rank % 4),
                'LENS_RUN_ID': run,
            },
        )
    ]


@pytest.mark.parametrize(
    ('settings', 'ranks'),
    [
        ({'export_strategy': 'single_rank'}, [7]),
        ({'export_strategy': 'single_rank', 'export_rank': '-1'}, [7]),
        ({'export_strategy': 'single_rank', 'export_rank': '0'}, [0]),
        ({'export_strategy': 'all_ranks'}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({'export_strategy': 'first_rank_per_node'}, [0, 4]),
        ({'export_strategy': 'sampled', 'export_sample_rate': '0'}, []),
        ({'export_strategy': 'sampled', 'export_sample_rate': '1'}, [0, 1, 2, 3, 4, 5, 6, 7]),
        # The rate is no setting of the other strategies, unless the sampler is on.
        ({'export_strategy': 'all_ranks', 'export_sample_rate': '0'}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({'export_strategy': 'single_rank', 'export_sample_rate': '0'}, [7]),
        ({'export_strategy': 'all_ranks', 'export_sample_rate': '0', 'sampler_enabled': '1'}, []),
        ({'export_strategy': 'single_rank', 'export_sample_rate': '1', 'sampler_enabled': '1'}, [7]),
    ],
)
def test_strategy_chooses_among_eight_ranks_on_two_nodes(settings: dict[str, str], ranks: list[int]) -> None:
    assert exporting(8, settings) == ranks


def test_the_sample_is_of_the_asked_size_and_decided_by_run_and_rank_alone() -> None:
    tenth = {'export_strategy': 'sampled', 'export_sample_rate': '0.1'}
    random.seed(1)
    stream = random.getstate()
    first = exporting(4000, tenth)

    assert 300 < len(first) < 500
    assert exporting(4000, tenth) == first
    assert exporting(4000, tenth, 'run-2') != first
    # Spread over the job, and a higher rate only adds ranks.
    assert 100 < len([rank for rank in first if rank < 2000]) < 300
    assert set(first) < set(exporting(4000, {**tenth, 'export_sample_rate': '0.2'}))
    # The same in every interpreter and version.
    assert first[:4] == [11, 22, 41, 44]
    assert random.getstate() == stream


@pytest.mark.parametrize(
    'environ',
    [{}, {'WORLD_SIZE': '1', 'RANK': '0'}, {'RANK': '3'}, {'WORLD_SIZE': ''}, {'WORLD_SIZE': 'many', 'RANK': 'x'}],
)
def test_the_driver_and_singletons_always_export(environ: dict[str, str]) -> None:
    nobody = {'LENS_EXPORT_STRATEGY': 'sampled', 'LENS_EXPORT_SAMPLE_RATE': '0', 'LENS_SAMPLER_ENABLED': '1'}
    assert exports(from_environment(nobody), environ)
