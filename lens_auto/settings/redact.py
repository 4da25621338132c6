# SPDX-License-Identifier: Apache-2.0
"""Secrets out of argument lists, environments and texts, before `run.json` keeps them or a line is printed.

Two nets: the name a value goes by, and the shape of well-known tokens. A value too many is hidden rather than one too
few, but for the counts of tokens and the keys of records that every RL command line is full of (`max_new_tokens=512`,
`--input_key prompt`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping

REDACTED = '[redacted]'

# Words of a name, case and separators aside; the parts of a compound stand together once the separators are gone.
_SECRET_WORDS = frozenset(
    'secret secrets password passwords passwd pwd passphrase passcode credential credentials creds cookie cookies '
    'authorization authentication auth bearer jwt signature sig dsn headers netrc apikey apikeys pat'.split()
)
_SECRET_COMPOUNDS = (
    'apikey',
    'apitoken',
    'accesskey',
    'accesstoken',
    'authtoken',
    'privatekey',
    'secretkey',
    'signingkey',
    'encryptionkey',
    'accountkey',
    'authkey',
    'sshkey',
    'masterkey',
    'licensekey',
    'storagekey',
    'connectionstring',
    'secret',
    'password',
    'passwd',
    'credential',
)

_SHAPES = (
    r'hf_(?=[A-Za-z]*\d)[A-Za-z0-9]{8,}|hf_[A-Za-z0-9]{16,}',
    r'sk-(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{8,}|sk-[A-Za-z0-9_-]{20,}',
    r'gh[opusr]_[A-Za-z0-9]{12,}',
    r'github_pat_[A-Za-z0-9_]{12,}',
    r'gl(?:pat|ptt|dt|rt)-[A-Za-z0-9_-]{12,}',
    r'(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}',
    r'AIza[A-Za-z0-9_-]{20,}',
    r'ya29\.[A-Za-z0-9_-]{12,}',
    r'xox[abeoprs]-[A-Za-z0-9-]{8,}',
    r'nvapi-[A-Za-z0-9_-]{12,}',
    r'npm_[A-Za-z0-9]{20,}',
    r'pypi-[A-Za-z0-9_-]{20,}',
    r'dapi[a-f0-9]{32}',
    r'wandb_v\d_[A-Za-z0-9_]{12,}',
    r'eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)?',
)


# Every pattern needs one of these, or a flag with a value behind it. Most texts have neither, and compiling the
# patterns takes longer than a short run.
_HINTS = (
    *('=', ':', '%', 'bearer', 'basic', 'digest', 'hf_', 'sk-', 'gho_', 'ghp_', 'ghs_', 'ghu_', 'ghr_', 'github_pat_'),
    *('glpat-', 'glptt-', 'gldt-', 'glrt-', 'akia', 'asia', 'aroa', 'aida', 'aiza', 'ya29.', 'xox', 'nvapi-', 'npm_'),
    *('pypi-', 'dapi', 'wandb_v', 'eyj', '-----begin'),
)


class _Patterns:
    """Compiled at the first use: nothing that runs before the program may import `re`.

    Every pattern starts where a word does: a megabyte of argument costs a megabyte's time and not its square.
    """

    __slots__ = ('assignment', 'flag', 'line', 'pem', 'scheme', 'shape', 'userinfo', 'words')

    def __init__(self) -> None:
        import re

        value = r"""\\?"(?:[^"\\]|\\.)*"|'[^']*'|[^\s,;&'"})\]]+"""
        self.shape = re.compile(r'(?<![A-Za-z0-9])(?:' + '|'.join(_SHAPES) + ')')
        self.scheme = re.compile(
            r'\b(bearer|basic|digest)(\s+|%20)(?=[^\s,;]*[\d=._-]|[^\s,;]{16})[^\s,;\'"]+', re.IGNORECASE
        )
        # `u:p@ss@host`: everything before the last one.
        self.userinfo = re.compile(r'(?<![A-Za-z0-9+.-])([A-Za-z0-9+.-]+://)[^\s/?#@\'"]+(?:@[^\s/?#@\'"]+)*(?=@)')
        # These hold spaces, commas and equals signs of their own.
        self.line = re.compile(
            r'\b((?:set-)?cookie|(?:proxy-)?authorization)(["\']?\s*[:=]\s*["\']?)[^\n"\']+', re.IGNORECASE
        )
        self.assignment = re.compile(
            r"""(?<![\w.-])(?P<key>[\w.-]+)(?P<link>\\?["']?\s*(?:=|:(?!//))\s*)(?P<value>""" + value + ')'
        )
        self.flag = re.compile(r'(?<!\S)(?P<key>--?[A-Za-z][\w.-]*)(?P<link>\s+)(?!-)(?P<value>' + value + ')')
        self.words = re.compile(r'[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+')
        self.pem = re.compile(
            r'-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)', re.DOTALL
        )


_compiled: _Patterns | None = None


def _patterns() -> _Patterns:
    global _compiled
    if _compiled is None:
        _compiled = _Patterns()
    return _compiled


def text(value: str) -> str:
    """The text with every secret in it replaced."""
    return value if _harmless(value) else _replaced(value)


def _harmless(value: str) -> bool:
    lower = value.lower()
    if not value.isascii() or any(hint in lower for hint in _HINTS):
        return False
    return not any(word.startswith('-') for word in lower.split()[:-1])


def _replaced(value: str) -> str:
    patterns = _patterns()
    value = patterns.pem.sub(REDACTED, value)
    value = patterns.userinfo.sub(r'\1' + REDACTED, value)
    value = patterns.line.sub(r'\1\2' + REDACTED, value)
    value = patterns.assignment.sub(_assignment, value)
    value = patterns.flag.sub(_assignment, value)
    value = patterns.scheme.sub(r'\1\2' + REDACTED, value)
    return patterns.shape.sub(REDACTED, value)


def argv(arguments: Iterable[str]) -> list[str]:
    """A command with the secrets in it replaced, one behind `--token` as well as one behind `token=`."""
    redacted: list[str] = []
    hidden: str | None = None
    for argument in arguments:
        if hidden is not None and not argument.startswith('-') and is_secret(hidden, argument):
            redacted.append(REDACTED)
            hidden = None
            continue
        hidden = argument.lstrip('-') if argument.startswith('-') and '=' not in argument else None
        key, equals, value = argument.partition('=')
        # The whole rest of an argument: a text's value would end at the first space.
        if equals and not _spaced(key) and is_secret(key, value):
            redacted.append(f'{key}={REDACTED}')
        else:
            redacted.append(text(argument))
    return redacted


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables with the values that are secrets, by name or by shape, replaced."""
    return {
        name: REDACTED
        if value and (_words(name)[-1:] in (['key'], ['token']) or is_secret(name, value))
        else text(value)
        for name, value in variables.items()
    }


def is_secret(key: str, value: str) -> bool:
    """Whether a value is a secret by the name it goes by."""
    words = _words(key)
    if not _SECRET_WORDS.isdisjoint(words):
        return True
    joined = ''.join(words)
    if any(compound in joined for compound in _SECRET_COMPOUNDS):
        return True
    if any(word.endswith(('token', 'tokens')) for word in words):
        return not _plain(value)
    return words[-1:] == ['key'] and _random(value)


def _words(key: str) -> list[str]:
    plain = key.replace('-', ' ').replace('_', ' ').replace('.', ' ')
    if plain.isascii() and plain.islower() and plain.replace(' ', '').isalpha():
        return plain.split()
    return [word.lower() for word in _patterns().words.findall(key)]


def _plain(value: str) -> bool:
    # A count, a rate or a switch: `max_tokens=512`, `token_level=true`.
    value = value.strip('"\'\\ ').lower()
    number = value.replace('.', '', 1).replace('_', '').lstrip('-')
    return (
        not value or value in ('true', 'false', 'none', 'null', 'yes', 'no') or (number.isdigit() and len(number) < 10)
    )


def _random(value: str) -> bool:
    value = value.strip('"\'\\ ')
    return (
        len(value) >= 20
        and value.replace('+', '').replace('/', '').replace('=', '').replace('-', '').replace('_', '').isalnum()
        and any(letter.isdigit() for letter in value)
    )


def _spaced(key: str) -> bool:
    return any(letter.isspace() for letter in key)


def _assignment(match: re.Match[str]) -> str:
    key, link, value = match['key'], match['link'], match['value']
    if value == REDACTED[:-1] or not is_secret(key, value):
        return match[0]
    return f'{key}{link}{REDACTED}'
