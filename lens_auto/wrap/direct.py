# SPDX-License-Identifier: Apache-2.0
"""Puts our code around a function that is never pickled by value: the cheaper half of `code`.

The original and what is told of the call are constants of the new code, as objects: nothing is looked up and nothing is
made at a call. No marshal or pickle could take such code, which a library's own functions never need.
"""

from __future__ import annotations

from lens_auto.record.standard import CodeType, FunctionType
from lens_auto.wrap.code import AFTER, AROUND, BEFORE, REPLACE, Signature, Unwrappable, like
from lens_auto.wrap.unseen import unseen_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BOTH = 'both'  # told before the call, and after it returned
GIVEN = 'given'  # what is told before the call may answer with other arguments

_SOURCE = """\
def _lens_w({parameters}):
    _lens_g = 'lens:original'
    _lens_n = 'lens:before'
    _lens_m = 'lens:after'
    _lens_v = {values}
{body}"""

_CALL = """\
    try:
        {taken}_lens_g({call})
    except:
        _lens_u = 'lens:unseen'
        _lens_u()
        raise
"""
_RETURNED = _CALL.replace('{taken}', 'return ')
_KEPT = _CALL.replace('{taken}', '_lens_r = ')
_BODIES = {
    BEFORE: f'    _lens_n(_lens_v)\n{_RETURNED}',
    AFTER: f'{_KEPT}    _lens_m(_lens_v, _lens_r)\n    return _lens_r\n',
    BOTH: f"""\
    if {{condition}}:
        _lens_n(_lens_v)
{_KEPT}
    _lens_m(_lens_v, _lens_r)
    return _lens_r
""",
    REPLACE: f'{_KEPT}    return _lens_m(_lens_v, _lens_r)\n',
    GIVEN: f"""\
    _lens_c = _lens_n(_lens_v)
    if _lens_c is not None:
        {{values}} = _lens_c
    _lens_v = _lens_c = None
{_RETURNED}""",
    AROUND: f"""\
    _lens_c = _lens_n(_lens_v)
{_RETURNED}
    finally:
        if _lens_c is not None:
            _lens_m(_lens_v, _lens_c)
""",
}
_SUSPENDS = 0x20 | 0x80 | 0x200  # generators and coroutines


class Direct:
    """One function with our code in place.

    Attributes:
        function: The function.
    """

    __slots__ = ('_original', '_ours', 'function')

    def __init__(
        self,
        function: FunctionType,
        how: str,
        before: Callable[..., Any] | None,
        after: Callable[..., Any] | None,
        condition: str = 'True',
    ):
        """Put our code in place.

        Args:
            function: A plain Python function without free variables.
            how: BEFORE, AFTER, BOTH, REPLACE (what `after` returns is the result), GIVEN (what `before` returns, unless
                that is None, are the arguments) or AROUND (`after` is given what `before` returned, however the call
                ends, unless that was None).
            before: Given the arguments, as `Signature.names` orders them.
            after: Given the arguments and the result.
            condition: With BOTH, an expression of the function's parameters: `before` is told only where it holds.

        Raises:
            Unwrappable: It cannot be done; nothing has changed.
        """
        code = function.__code__
        if code.co_freevars or code.co_flags & _SUSPENDS:
            raise Unwrappable('it has free variables, or suspends')
        signature = Signature(code)
        source = _SOURCE.format(
            parameters=signature.parameters(),
            values=signature.values(),
            body=_BODIES[how].format(
                call=signature.call(keep=True)[len('_lens_g(') : -1], condition=condition, values=signature.values()
            ),
        )
        made = compile(source, '<lens_auto>', 'exec', dont_inherit=True)
        ours = next(const for const in made.co_consts if isinstance(const, CodeType))
        objects = {
            'lens:original': FunctionType(code, function.__globals__, code.co_name),
            'lens:before': before,
            'lens:after': after,
            'lens:unseen': unseen_here,
        }
        consts: Any = tuple(objects.get(const, const) if type(const) is str else const for const in ours.co_consts)
        self.function = function
        self._original = code
        self._ours = like(ours.replace(co_consts=consts), code)
        function.__code__ = self._ours

    def shut(self) -> bool:
        """Let calls run the original code; False when somebody has changed the function's code since."""
        if self.function.__code__ is not self._ours:
            return False
        self.function.__code__ = self._original
        return True
