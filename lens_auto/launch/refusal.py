# SPDX-License-Identifier: Apache-2.0
"""The launcher's right to refuse, which ends where the command starts."""


class Refusal(Exception):
    """The launcher will not start the command; the text says why and what to do."""
