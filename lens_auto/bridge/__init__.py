# SPDX-License-Identifier: Apache-2.0
"""The OpenTelemetry API that the program itself has: what it would drop is recorded, and both trees of spans join.

Called by `lens_auto.hook` when a module of OpenTelemetry has executed; works with the program's own copy of it, which
is never imported before the program does so, and never configured: no provider is set here.
"""
