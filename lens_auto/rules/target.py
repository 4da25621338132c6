# SPDX-License-Identifier: Apache-2.0
"""Targets: `module:qualname`, the place in a program that a rule is about."""

from __future__ import annotations

import re

_DOTTED = re.compile(r'[^\W\d]\w*(\.[^\W\d]\w*)*')


class TargetError(ValueError):
    """A text is no target. `message` is the fault, `hint` the way out."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def is_dotted(text: str) -> bool:
    """Whether `text` is a dotted Python name."""
    return _DOTTED.fullmatch(text) is not None


def is_script(module: str) -> bool:
    """Whether the module part of a target is the path of a script."""
    return module.endswith('.py')


def parse(text: str) -> tuple[str, str]:
    """The module and the qualified name of a target.

    Raises:
        TargetError: The text is no target, or is one that only a later version knows.
    """
    module, colon, qualname = text.partition(':')
    if is_script(module):
        if not is_dotted(qualname):
            raise TargetError(f'target `{text}` names no function of the script', 'write `train.py:Worker.step`')
        return module.removeprefix('./'), qualname
    if '/' in module or '\\' in module:
        raise TargetError(f'target `{text}`: `{module}` is neither a module nor a script', 'a script ends in `.py`')
    if module == '__main__':
        raise TargetError(
            f'target `{text}`: `__main__` is another script in every run',
            'name the script by its path, or the end of it: `train.py:Worker.step`',
        )
    if not colon:
        head, dot, tail = text.rpartition('.')
        guess = f'`{head}:{tail}`' if dot and is_dotted(text) else '`my_trainer.loop:train`'
        raise TargetError(f'target `{text}` has no colon between module and name', f'write for example {guess}')
    if not is_dotted(module):
        raise TargetError(f'target `{text}`: `{module}` is not a module name', 'write `module:qualname`')
    if '<locals>' in qualname:
        raise TargetError(
            f'target `{text}` is a function inside a function', 'only functions and methods of a module can be reached'
        )
    if not is_dotted(qualname):
        shown = qualname or 'nothing'
        raise TargetError(f'target `{text}`: {shown} after the colon is not a name', 'write `module:Class.method`')
    return module, qualname


def parse_place(text: str) -> tuple[str, str]:
    """The module or script of a target of source, and the qualified name in it: '' for code of the module itself.

    The name may go into functions (`train.step`, as `train.<locals>.step`), and its last part may be `*`.

    Raises:
        TargetError: The text is no such target.
    """
    module, colon, qualname = text.partition(':')
    qualname = qualname.replace('.<locals>.', '.')
    named = qualname.removesuffix('*').removesuffix('.')
    if module == '__main__' or (('/' in module or '\\' in module) and not is_script(module)):
        parse(text)  # says what is wrong with it
    if not is_script(module) and not is_dotted(module):
        raise TargetError(f'target `{text}`: `{module}` is not a module name', 'write `module:qualname`')
    if colon and not (is_dotted(qualname) or qualname == '*' or (qualname.endswith('.*') and is_dotted(named))):
        shown = qualname or 'nothing'
        hint = 'write `module:Class.method`, or the module alone for its own code'
        raise TargetError(f'target `{text}`: {shown} after the colon is not a name', hint)
    return module.removeprefix('./'), qualname


def parse_pair(text: str) -> tuple[str, str, str]:
    """The module and both qualified names of `module:Timer.start/stop`.

    Raises:
        TargetError: The text is no such pair.
    """
    first, slash, last = text.rpartition('/')
    if not slash or ':' not in first:
        raise TargetError(f'pair `{text}` does not name a start and a stop', 'write `module:Timer.start/stop`')
    module, start = parse(first)
    if not last.isidentifier():
        raise TargetError(f'pair `{text}`: `{last}` is not a name', 'write `module:Timer.start/stop`')
    owner, dot, _ = start.rpartition('.')
    return module, start, f'{owner}{dot}{last}'
