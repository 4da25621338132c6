# SPDX-License-Identifier: Apache-2.0
"""Every kind of call Ray has, each cell called from inside a driver function `phase_<cell>`."""
