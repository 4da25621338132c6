# SPDX-License-Identifier: Apache-2.0
"""The command: `lens-rules discover PATHS [-o FILE]`."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence

from .checking import checked
from .proposal import LIMIT, propose
from .rules import GUESS, LIKELY, SURE, Proposal
from .sources import MissingPath, read
from .writing import FIRST


def run(paths: Sequence[str], output: str | None = None, limit: int | None = None) -> int:
    """Run the command.

    Args:
        paths: Files and folders to read.
        output: Where to write the rule file; the terminal unless given.
        limit: The most rules.

    Returns:
        0; 1 when nothing was found to propose; 2 when the command line is wrong.
    """
    if output is not None and not _may_be_written(output):
        print(f'lens-rules: {output} is there, and is no proposal of ours: name another file', file=sys.stderr)
        return 2
    try:
        code = read(paths)
    except MissingPath as error:
        print(f'lens-rules: {error} is neither a folder nor a Python file', file=sys.stderr)
        return 2
    if not code.sources:
        print(f'lens-rules: no Python files in {", ".join(paths)}', file=sys.stderr)
        return 2
    proposal, written = checked(propose(code, paths, LIMIT if limit is None else limit), code)
    if output is None:
        sys.stdout.write(written)
    else:
        try:
            with open(output, 'w', encoding='utf-8') as file:
                file.write(written)
        except OSError as error:
            print(f'lens-rules: cannot write {output}: {error.strerror}', file=sys.stderr)
            return 2
    print(_summary(proposal, output), file=sys.stderr)
    return 0 if proposal.rules else 1


def _may_be_written(path: str) -> bool:
    """Whether a file is not there yet, or is an earlier proposal."""
    try:
        with open(path, encoding='utf-8', errors='replace') as file:
            return file.read(len(FIRST)) == FIRST
    except FileNotFoundError:
        return True
    except OSError:
        return not os.path.exists(path)


def _summary(proposal: Proposal, output: str | None) -> str:
    files = f'{proposal.files} file{"" if proposal.files == 1 else "s"}'
    if not proposal.rules:
        return f'lens-rules: nothing in {files} looks like the training of a policy'
    counts = Counter(rule.sureness for rule in proposal.rules)
    told = ', '.join(f'{counts[word]} {word}' for word in (SURE, LIKELY, GUESS) if counts[word])
    count = f'{len(proposal.rules)} rule{"" if len(proposal.rules) == 1 else "s"}'
    where = f'{output}: ' if output else ''
    return f'lens-rules: {where}{count} from {files}: {told}. Read them, then: lens-rules check {output or "FILE"}'
