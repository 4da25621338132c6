# SPDX-License-Identifier: Apache-2.0
"""`lens-rules discover`: reads a code base, without importing it, and proposes a commented rule file.

`sources` finds the files, `reading` notes what each says, `calls` follows calls by name, and `words` knows what names
mean to a trainer. `loops`, `timers`, `phases`, `inline`, `loggers` and `keys` find seams, which `survey` holds
together; the `*_rules` files make rules of them, `buckets` sees that no second counts twice, `proposal` chooses,
`writing` writes the file, and `checking` reads it back. Called by `lens_auto.rules.cli` alone, and never in a traced
process.
"""
