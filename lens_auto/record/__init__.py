# SPDX-License-Identifier: Apache-2.0
"""The recorder of a traced process: spans in a context variable, ids, clock, and the mapped journal they land in.

Called by `wrap` and `hook` inside the traced process, and (format and reader only) by `collect` in the launcher.
Imports the standard library only, and of that only what is cheap: a worker pays for every module named here.
"""
