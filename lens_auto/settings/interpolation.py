# SPDX-License-Identifier: Apache-2.0
"""OmegaConf's `${oc.env:VAR}` and `${oc.env:VAR,default}`.

Whatever else `${...}` may mean is known to the program only.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_RESOLVER = 'oc.env:'


def interpolate(text: str, environ: Mapping[str, str]) -> str | None:
    """Fill in environment variables; None when that cannot be done here.

    Args:
        text: The value as it stands in the file.
        environ: Where the variables are looked up.
    """
    out = ''
    while '${' in text:
        before, _, rest = text.partition('${')
        body, closed, text = rest.partition('}')
        if not closed or not body.startswith(_RESOLVER) or '${' in body:
            return None
        name, comma, default = body[len(_RESOLVER) :].partition(',')
        value = environ.get(name.strip())
        if value is None:
            if not comma:
                return None
            value = unquoted(default.strip())
            if value == 'null':
                value = ''
        out += before + value
    return out + text


def unquoted(text: str) -> str:
    """The text without the quotes around it, if it has any."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in '\'"':
        return text[1:-1]
    return text
