# SPDX-License-Identifier: Apache-2.0
"""Reads a proposed file back as `lens-rules check` would: what does not fit is not proposed."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from lens_auto.rules import document
from lens_auto.rules.compile import compile_files
from lens_auto.rules.resolver import resolve
from lens_auto.rules.validate import validate

from .rules import Proposal
from .sources import CodeBase
from .writing import text


def checked(proposal: Proposal, code: CodeBase) -> tuple[Proposal, str]:
    """The proposal without the rules that would not find their target, and its text.

    Raises:
        RuleErrors: The text is no valid rule file: a fault of ours.
    """
    roots = list(dict.fromkeys(source.root for source in code.sources))
    path = [*roots, *(entry for entry in sys.path if entry)]
    while True:
        written = text(proposal)
        name = 'the proposed file'
        file = validate(document.parse(written, name), name, os.path.abspath(name))
        findings = resolve(compile_files([file], ''), path, roots)
        lost = {index: found for index, found in enumerate(findings) if found.drifted}
        if not lost:
            return proposal, written
        told = [f'does not resolve ({found.state}): {found.target} {found.detail}'.rstrip() for found in lost.values()]
        kept = [rule for index, rule in enumerate(proposal.rules) if index not in lost]
        proposal = replace(proposal, rules=kept, left_out=[*told, *proposal.left_out])
