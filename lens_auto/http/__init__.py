# SPDX-License-Identifier: Apache-2.0
"""Requests over HTTP as spans, and the caller's context from one process to the other: W3C trace context.

`servers` and `clients` hold the sites; `sites` says which one a rule has at which function. Of a request its
method, its route, where it goes and what became of it are read: no path, query, header or body.
"""
