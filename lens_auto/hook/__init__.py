# SPDX-License-Identifier: Apache-2.0
"""Stage 2: from the first import of a named module on, patches what the plan names as its modules execute.

Loaded by stage 1 (`sitecustomize`), by absolute path. Imports `wrap`, `record`, the plan reader of `rules` and the
projection of `settings`; the standard library otherwise, and only what is cheap.
"""
