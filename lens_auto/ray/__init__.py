# SPDX-License-Identifier: Apache-2.0
"""Ray, seen from inside its processes: which task a span belongs to, what was submitted, what is waited for.

Called by `hook` when a module of Ray has executed; uses `record` and `wrap`. Never imports Ray: it patches what the
program has imported, and asks `sys.modules` for the rest. Nothing here
changes a pickle or a signature, and one kind of call alone takes an argument along (`carrier`).
"""
