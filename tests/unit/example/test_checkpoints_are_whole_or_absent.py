# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
import torch
from tiny_grpo.checkpoint import CheckpointManager


def test_the_newest_checkpoints_are_kept(tmp_path: Path):
    checkpoints = CheckpointManager(str(tmp_path / 'out'), keep=2)
    for step in (1, 2, 3):
        checkpoints.save(step, {'w': torch.tensor([float(step)])})

    assert sorted(path.name for path in (tmp_path / 'out').iterdir()) == ['step_2', 'step_3']
    assert torch.load(tmp_path / 'out' / 'step_3' / 'policy.pt')['w'].tolist() == [3.0]


def test_a_save_that_fails_leaves_the_last_checkpoint_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    checkpoints = CheckpointManager(str(tmp_path))
    checkpoints.save(1, {'w': torch.tensor([1.0])})

    def half_written(weights: object, path: Path) -> None:
        path.write_bytes(b'half')
        raise OSError('disk full')

    monkeypatch.setattr(torch, 'save', half_written)
    with pytest.raises(OSError, match='disk full'):
        checkpoints.save(1, {'w': torch.tensor([2.0])})
    monkeypatch.undo()

    assert torch.load(tmp_path / 'step_1' / 'policy.pt')['w'].tolist() == [1.0]
