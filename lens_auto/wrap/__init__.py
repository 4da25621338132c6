# SPDX-License-Identifier: Apache-2.0
"""What a rule does to a function: the code put around it, and what that code calls while the process records.

`hook` asks for a site when a named module has executed; the code it puts in place finds the runtime as
`_lens_rt` (see `runtime`). Imports `record` and the standard library only.
"""
