# SPDX-License-Identifier: Apache-2.0
"""GRPO on one page per concept, in plain torch.

Read `trainer.py` first: its loop names every phase, and each phase lives in the file of that name. The parts talk
through a few coarse calls with plain data (`generate`, `score`, `logprobs`, `train`), so any of them can live in
another process.

On Ray they do: `actors.py` and `reward_actor.py` are those processes, `remote_parts.py` gives them the faces of the
parts, so that the same loop runs on them. `trainer_async.py` is the loop that does not wait for its rollouts:
`collector.py` makes them ahead of time and `buffer_actor.py` holds them.
"""
