# SPDX-License-Identifier: Apache-2.0
"""Turns the journals of a run into its record: the run folder, OTLP, console lines, and the summary at the end.

Called by `launch` (identity and folder before the program starts, the collector thread beside it, the summary after)
and by `lens-instrument --replay`. Imports `record` (reader, format) and `settings`; OpenTelemetry only in `otlp*.py`,
in the sender's threads. `run`, `folder`, `spool` and `mounts` run before the program starts and import next to nothing.
"""
