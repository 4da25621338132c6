# SPDX-License-Identifier: Apache-2.0
"""The `telemetry:` block: its fields, where each value comes from, and how the result reaches every process of a run.

The launcher calls `resolve`, `project.environment` and `describe`; a traced process reads `fields`, `project` and
`exports`; the collector reads `exports` and `redact`. Nothing here may import another part of lens_auto. A traced
process and the launcher before it has started the program get the standard library's cheapest modules only: PyYAML is
imported when a file must be parsed (`document`).
"""
