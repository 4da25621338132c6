# SPDX-License-Identifier: Apache-2.0
"""GRPO on one page per concept, in plain torch.

Read `trainer.py` first: its loop names every phase, and each phase lives in the file of that name. The parts talk
through a few coarse calls with plain data (`generate`, `score`, `logprobs`, `train`), so any of them can live in
another process.
"""
