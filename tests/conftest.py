# SPDX-License-Identifier: Apache-2.0
"""What every test may count on: an environment without settings of ours or of the machine's own run."""

import os

import hypothesis
import pytest

# How long an example takes is the machine's business.
hypothesis.settings.register_profile('untimed', deadline=None)
hypothesis.settings.load_profile('untimed')

# Backends of the tests are in this process, and gRPC writes on its terminal what it likes.
os.environ.setdefault('GRPC_VERBOSITY', 'NONE')

# A test run may itself be traced, scheduled by SLURM or exporting somewhere; none of that is the test's business.
OURS = ('LENS_', 'NEMO_RL_OTEL_', 'NEMO_GYM_OTEL_', 'NEMO_LENS_', 'OTEL_', 'SLURM_', 'TORCHELASTIC_')
RANKS = ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_ADDR', 'MASTER_PORT', 'TRACEPARENT', 'TRACESTATE')


@pytest.fixture(autouse=True)
def _no_inherited_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(OURS) or name in RANKS:
            monkeypatch.delenv(name)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is for `make test-frameworks`, unless it is this or the marker is asked for."""
    if os.environ.get('LENS_TEST_RAY') or 'frameworks' in str(config.getoption('markexpr')):
        return
    kept = [item for item in items if not item.get_closest_marker('frameworks')]
    config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker('frameworks')])
    items[:] = kept
