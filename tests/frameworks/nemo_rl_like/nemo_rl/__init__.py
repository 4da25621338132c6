# SPDX-License-Identifier: Apache-2.0
"""A small program with the module paths, signatures and control flow of NeMo-RL, for the tests of its rule file."""
