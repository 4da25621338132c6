# SPDX-License-Identifier: Apache-2.0
"""Phases that a training loop does itself, with no function and no timer of the program around them.

The update is often an inner loop with `loss.backward()` in it; a library's `generate` or `torch.save` is called so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from . import words
from .loops import Header, StepLoop, fitting
from .meaning import Meaning, kinds
from .reading import Call, Loop

_CALLED = frozenset(('generation', 'checkpoint', 'forward_backward', 'optimizer'))
_SAVES = re.compile(r'(torch\.save|.*\.save_pretrained|.*\.save_checkpoint|save_file)')
_NAMED = re.compile(r'[A-Za-z_]\w*(\.[A-Za-z_]\w*)*')


@dataclass(eq=False)
class InlineLoop:
    """An inner loop that updates the policy.

    Attributes:
        loop: It.
        header: The pattern for it.
        call: A call in it that says so.
    """

    loop: Loop
    header: Header
    call: Call


@dataclass(eq=False)
class InlineCalls:
    """Calls of a library's function, all written alike.

    Attributes:
        match: The pattern for them.
        group: What they do.
        calls: They.
        step: The training loop they are in.
    """

    match: str
    group: str
    calls: list[Call]
    step: StepLoop


def inner_updates(meaning: Meaning, steps: list[StepLoop]) -> Iterator[InlineLoop]:
    """The inner loops of training loops in which the update itself is written out."""
    for step in steps:
        taken: list[Loop] = []
        for call in step.loop.calls:
            if meaning.own(call) not in words.TRAINING or meaning.graph.callees(call, step.loop.unit):
                continue
            inner = call.loops[call.loops.index(step.loop) + 1 :]
            if call in meaning.timed or not inner or inner[0] in taken:
                continue
            taken.append(inner[0])
            header = fitting(inner[0])
            if header is not None and not _timed(meaning, _first(inner[0]) or call, 'policy_update', inner[0]):
                yield InlineLoop(inner[0], header, call)


def library_calls(meaning: Meaning, steps: list[StepLoop], updates: list[InlineLoop]) -> Iterator[InlineCalls]:
    """The calls of libraries that are a phase of their own, right in a training loop."""
    inside = {update.loop for update in updates}
    for step in steps:
        found: dict[str, InlineCalls] = {}
        for call in step.loop.calls:
            written = f'{call.receiver}.{call.name}'.lstrip('.')
            group = 'checkpoint' if _SAVES.fullmatch(written) else meaning.own(call)
            if group not in _CALLED or call in meaning.timed or inside.intersection(call.loops):
                continue
            if not isinstance(call.node, ast.Call) or call.remote or meaning.graph.callees(call, step.loop.unit):
                continue
            match = f'{ast.unparse(call.node.func)}($$$)'
            if not _NAMED.fullmatch(ast.unparse(call.node.func)) or _timed(meaning, call, group, None):
                continue
            found.setdefault(match, InlineCalls(match, group, [], step)).calls.append(call)
        yield from found.values()


def _first(loop: Loop) -> Call | None:
    return next(loop.calls, None)


def _timed(meaning: Meaning, call: Call, group: str, within: Loop | None) -> bool:
    """Whether a label of the same phase is around a call; with a loop, around that loop."""
    for block in call.blocks:
        label = meaning.timed.get(block)
        if label is None or (within is not None and within in block.loops):
            continue
        if kinds(frozenset((words.of_label(label) or '',))) == kinds(frozenset((group,))):
            return True
    return False
