# SPDX-License-Identifier: Apache-2.0
"""Which site an `http` rule has at which function."""

from __future__ import annotations

from lens_auto.http.clients import AiohttpRequestSite, AiohttpSite, HttpxSite, RequestsSite
from lens_auto.http.servers import AsgiSite, FlaskSite, StatusSite
from lens_auto.wrap.code import AFTER, AROUND, BEFORE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lens_auto.wrap.site import Site

_LETTER = {BEFORE: 'b', AFTER: 'r', AROUND: 'w'}
_KINDS: dict[str, tuple[type[Site], str]] = {
    'Starlette.__call__': (AsgiSite, AROUND),
    'RequestResponseCycle.send': (StatusSite, BEFORE),
    'Flask.full_dispatch_request': (FlaskSite, AROUND),
    'Client.send': (HttpxSite, AROUND),
    'AsyncClient.send': (HttpxSite, AROUND),
    'Session.send': (RequestsSite, AROUND),
    'ClientSession._request': (AiohttpSite, AROUND),
    'ClientRequest.__init__': (AiohttpRequestSite, AFTER),
}


def site_at(qualname: str) -> tuple[type[Site], str, str]:
    """The kind of site at a function, how it is told of calls, and the last letter of its runtime key.

    Args:
        qualname: The function, as `rules.model.HTTP_PLACES` names it.
    """
    made, how = _KINDS[qualname]
    return made, how, _LETTER[how]
