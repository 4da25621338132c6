# SPDX-License-Identifier: Apache-2.0
"""Source that becomes spans: patterns, the places in a module that they match, and the edits of its syntax tree there.

`hook` edits modules with it as they are imported, `lens-rules` and the codemod ask it for places. Imports nothing of
ours and, of the standard library, only what is built into the interpreter: in a traced process `ast` may be a module of
the program's own.
"""
