# SPDX-License-Identifier: Apache-2.0
"""`lens-codemod`: what the rules say, written into the source; and taken out of it again.

Reads with libcst, and changes nothing but by insertion: what was there stays, byte for byte. Only its own command calls
it. Needs the extra `codemod`; may import `rules` and the matcher of `rewrite`, and nothing of the traced process.
"""
