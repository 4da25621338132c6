# SPDX-License-Identifier: Apache-2.0
"""The span that an exception of the program has cut off from the code that would end it.

It came (from a signal handler) after the span was made current and before our code held it. Looked for on that path
only: nothing is noted down for it while all goes well.
"""

from __future__ import annotations

import sys

from lens_auto.record.span import current
from lens_auto.wrap.frame import local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lens_auto.record.span import Span
    from lens_auto.wrap.site import Site

_HELD = '_lens_s'  # where the code around a function keeps its span


def leaked(site: Site | None, error: BaseException | None = None) -> Span | None:
    """The current span, if a site has just opened it and no call in progress holds it; else None.

    Args:
        site: The site that was opening a span.
        error: For sites whose spans no frame holds: what came; it must have come while a span was being started.
    """
    here = current.get()
    if here is None or site is None or here.site is not site or not site.newest(here):
        return None
    if error is not None:
        return here if _starting(error) else None
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


def _starting(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_name == '_start':
            return True
        trace = trace.tb_next
    return False
