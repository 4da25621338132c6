# SPDX-License-Identifier: Apache-2.0
"""What `lens-rules discover` proposes for a program given as text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from lens_auto.discover import sources
from lens_auto.discover.checking import checked
from lens_auto.discover.proposal import LIMIT, propose
from lens_auto.discover.rules import Proposal, Proposed


class Discovered:
    """A proposal, for asking.

    Attributes:
        proposal: It.
        text: The file.
    """

    def __init__(self, folder: Path, files: Mapping[str, str], limit: int = LIMIT) -> None:
        for name, source in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(source))
        code = sources.read([str(folder)])
        self.proposal: Proposal
        self.proposal, self.text = checked(propose(code, [str(folder)], limit), code)

    def rules(self, kind: str) -> list[Proposed]:
        """The rules of a kind."""
        return [rule for rule in self.proposal.rules if rule.fields['kind'] == kind]

    def only(self, kind: str) -> Proposed:
        """The one rule of a kind."""
        [rule] = self.rules(kind)
        return rule

    def targets(self, group: str) -> list[str]:
        """The targets of the function rules of a group, without their modules."""
        return sorted(
            str(rule.fields['target']).partition(':')[2]
            for rule in self.rules('function')
            if rule.fields['group'] == group
        )

    def loops(self) -> dict[str, str]:
        """The pattern of each step's loop, by its target."""
        return {
            str(rule.fields['target']): str(rule.fields['match'])
            for rule in self.rules('loop')
            if rule.fields['group'] == 'step'
        }

    def labels(self) -> dict[str, str]:
        """The group of each timer label."""
        found: dict[str, str] = {}
        for rule in self.rules('timer'):
            labels = rule.fields['labels']
            assert isinstance(labels, dict)
            for label, value in labels.items():
                assert isinstance(value, dict)
                found[label] = str(value['group'])
        return found

    def left_out(self, word: str) -> list[str]:
        """The lines on what was left out that have a word in them."""
        return [line for line in self.proposal.left_out if word in line]
