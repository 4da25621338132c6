# SPDX-License-Identifier: Apache-2.0
"""The `telemetry:` block of a config file and of the files it inherits from."""

from __future__ import annotations

import os
import stat

from lens_auto.settings import cache
from lens_auto.settings.fields import BY_NAME, TRUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lens_auto.settings.cache import Document

_DEPTH = 8
# A config file is typed by hand; `--config` may as well name a file of training data.
_LARGEST = 4 << 20
_YAML = ('.yaml', '.yml', '.json')


class Entry:
    """One key of a block: its text, the shape of its value (see `document`), and the place to name in messages."""

    __slots__ = ('text', 'shape', 'place')

    def __init__(self, text: str, shape: int, place: str) -> None:
        self.text = text
        self.shape = shape
        self.place = place


def read(path: str, folder: str | None, whole: bool = False) -> tuple[dict[str, Entry], list[str]]:
    """Read the block of a file; a child's keys win over those of the files its `defaults:` names.

    Args:
        path: The file, as the user named it.
        folder: The cache folder, or None.
        whole: A file without a `telemetry:` key is the block itself.

    Returns:
        The block's keys, and what could not be read.
    """
    problems: list[str] = []
    return _inherited(path, folder, whole, problems, ()), problems


def looks_like_a_file(name: str) -> bool:
    """Whether `--config NAME` means a file at all; for many programs it is the name of a preset."""
    return '/' in name or name.endswith(_YAML)


def _inherited(
    path: str, folder: str | None, whole: bool, problems: list[str], trail: tuple[str, ...]
) -> dict[str, Entry]:
    document = _document(path, folder, whole)
    if 'fault' in document:
        problems.append(f'{path}: {document["fault"]}')
        return {}
    prefix = 'telemetry.' if 'line' in document else ''
    own: dict[str, Entry] = {}
    for name, (text, line, shape) in document.get('block', {}).items():
        own[name] = Entry(text, shape, f'{path}:{line} {prefix}{name}')
    block: dict[str, Entry] = {}
    for kind, name in (*document.get('defaults', ()), ('self', '')):
        if kind == 'self':
            _merge(block, own)
            own = {}
            continue
        parent = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if not name.endswith(_YAML):
            # Hydra's spelling. One that is not there lies somewhere else on Hydra's search path.
            parent += '.yaml'
            if not os.path.exists(parent):
                continue
        if parent == path or parent in trail or len(trail) >= _DEPTH:
            problems.append(f'{path}: its `defaults:` lead in a circle, or more than {_DEPTH} files deep')
            continue
        _merge(block, _inherited(parent, folder, kind == 'block', problems, (*trail, path)))
    return block


def _merge(block: dict[str, Entry], child: dict[str, Entry]) -> None:
    # NeMo-RL's marker for "this section replaces the inherited one".
    marker = child.get('_override_')
    if marker is not None and marker.text.lower() in TRUE:
        block.clear()
    block.update(child)


def _document(path: str, folder: str | None, whole: bool) -> Document:
    try:
        status = os.stat(path)
        # Opened only when it is a plain file: `--config <(generate)` can be read once, and that is the program's.
        if not stat.S_ISREG(status.st_mode):
            return {'fault': 'not a plain file'}
        document = cache.fetch(folder, path, status, whole)
        if document is not None:
            return document
        if status.st_size > _LARGEST:
            return {'fault': f'larger than {_LARGEST >> 20} MiB'}
        with open(path, 'rb') as file:
            status = os.fstat(file.fileno())
            data = file.read(_LARGEST)
    except OSError as error:
        return {'fault': error.strerror or type(error).__name__}
    if not whole and b'telemetry' not in data and b'defaults' not in data:
        return {}
    from lens_auto.settings import document as yaml_document

    document = yaml_document.parse(data, frozenset(BY_NAME), whole)
    cache.store(folder, path, status, whole, document)
    return document
