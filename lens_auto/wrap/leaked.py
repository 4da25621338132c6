# SPDX-License-Identifier: Apache-2.0
"""The span that an exception of the program has cut off from the code that would end it.

It came (from a signal handler) while our code started the span and nothing held it yet, or while it ended the span and
nothing held it any more. Looked for in the exception's traceback, on that path only: nothing is noted down for it while
all goes well.
"""

from __future__ import annotations

import sys

from lens_auto.record.foreign import HOME
from lens_auto.record.recorder import Recorder
from lens_auto.record.span import current
from lens_auto.wrap.frame import local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from lens_auto.record.span import Span
    from lens_auto.wrap.site import Site

_HELD = '_lens_s'  # where the code around a function keeps its span
_OPENING = Recorder.open_under.__code__
# Functions of sites that have the span in question as `span`.
_HOLDING = ('leave', 'fail', '_start')
# Before 3.11 a signal handler may run between the return of a call of ours and the storing of what it returned.
CHECKS_AFTER_CALL = sys.version_info < (3, 11)
_POP_BLOCK, _STORE_FAST = 87, 125  # what follows there: the end of `try: return site.open(...)`, `_lens_s = ...`


def leaked(site: Site | None, error: BaseException) -> Span | None:
    """The span that nothing but this exception's traceback knows of, or None.

    Args:
        site: The site that was opening or ending a span.
        error: What came.
    """
    here, trace = current.get(), error.__traceback__
    begun = False  # our code had begun to make a span
    innermost = None  # of our frames: a signal handler's may follow
    while trace is not None:
        frame = trace.tb_frame
        code = frame.f_code
        if code is _OPENING:
            return _half_made(frame)
        if code.co_filename.startswith(HOME):
            if code.co_name in _HOLDING and frame.f_locals.get('span') is not None:
                return frame.f_locals['span']
            if 'up' in code.co_varnames:
                if 'up' in frame.f_locals and frame.f_locals['up'] is not here:
                    # It has just been made current.
                    return here if here is not None and here.site is site else None
                begun = True
            innermost = trace
        elif '_lens_rt' in code.co_names:
            innermost = trace
        trace = trace.tb_next
    if CHECKS_AFTER_CALL and innermost is not None and not begun:
        code = innermost.tb_frame.f_code
        following = code.co_code[innermost.tb_lasti + 2]
        if following == (_STORE_FAST if '_lens_rt' in code.co_names else _POP_BLOCK):
            return _unreceived(site)
    return None


def _half_made(frame: FrameType) -> Span | None:
    values = frame.f_locals
    span = values.get('span')
    if span is None or 'start' not in values or not (values['announce'] or current.get() is span):
        return None  # nobody knows of it
    if not hasattr(span, 'attributes'):
        span.attributes = values['attributes']
    return span


def _unreceived(site: Site | None) -> Span | None:
    """The current span, if the call that made it has returned and what it returned is not stored yet."""
    here = current.get()
    if here is None or site is None or here.site is not site or not site.newest(here):
        return None
    frame = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    ours = [patch.ours for patch in site.patches]
    while frame is not None:
        if frame.f_code in ours:
            try:
                if local(frame, _HELD) is here:
                    return None
            except KeyError:  # not set yet, or a frame that must not be looked at
                if 'locals' in frame.f_code.co_names or 'vars' in frame.f_code.co_names:
                    return None
        frame = frame.f_back
    return here
