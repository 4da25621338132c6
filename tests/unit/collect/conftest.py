# SPDX-License-Identifier: Apache-2.0

import os
from pathlib import Path

import pytest

# gRPC reads it when it is first imported. The launcher's sender sets it too, in a process that has not imported gRPC.
os.environ.setdefault('GRPC_VERBOSITY', 'NONE')

from tests.unit.collect.journals import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)
