# SPDX-License-Identifier: Apache-2.0
"""A function that a rule names."""


def ruled(one):
    return one
