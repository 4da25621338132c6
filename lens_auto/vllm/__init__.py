# SPDX-License-Identifier: Apache-2.0
"""vLLM from inside its processes: its own tracer and statistics switched on, requests under their callers, its figures.

Called by `lens_auto.hook`. Never imports vLLM, torch or OpenTelemetry: it is told of calls in processes that have.
"""
