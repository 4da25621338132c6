# SPDX-License-Identifier: Apache-2.0
"""A YAML file as values that know their line and column, and what is wrong with it as YAML."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias, cast

import yaml

from .errors import RuleError, RuleErrors

MAX_BYTES = 4 * 1024 * 1024


class Place(NamedTuple):
    """Where a value starts, counted from 1."""

    line: int
    column: int


class Scalar(NamedTuple):
    """A value that is neither a list nor a mapping.

    Attributes:
        value: As YAML reads it: `no` is False, `1` is an int, nothing is None.
        text: As written, without quotes.
        place: Where it starts.
        text_column: The column where `text` starts; None where the file shows something else (escapes, folded lines).
    """

    value: str | int | float | bool | None
    text: str
    place: Place
    text_column: int | None


class Items(NamedTuple):
    """A list."""

    items: tuple[Node, ...]
    place: Place


class Fields(NamedTuple):
    """A mapping; no key occurs twice."""

    pairs: tuple[tuple[Scalar, Node], ...]
    place: Place

    def get(self, key: str) -> Node | None:
        """The value under `key`."""
        return next((value for name, value in self.pairs if name.text == key), None)


Node: TypeAlias = Scalar | Items | Fields

Plain: TypeAlias = 'str | int | float | bool | list[Plain] | dict[str, Plain] | None'


def plain(node: Node) -> Plain:
    """The value without its places; mappings in the order of their keys."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    return {key.text: plain(value) for key, value in sorted(node.pairs, key=lambda pair: pair[0].text)}


def read(path: str, name: str, origin: str = '') -> str:
    """The text of a rule file.

    Args:
        path: The file.
        name: The file, as errors name it.
        origin: Who named it: `--rules`, `LENS_RULES`.

    Raises:
        RuleErrors: It cannot be read or is not UTF-8.
    """
    named = f'it is named by {origin}; ' if origin else ''
    try:
        # O_NONBLOCK: opening a pipe that nobody writes must not hang the launch.
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), 'rb') as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _fault(name, 1, 1, 'this is not a regular file', f'{named}name a YAML file')
            data = file.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise _fault(name, 1, 1, 'this is a folder, not a rule file', f'{named}name the YAML files in it') from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else 'its name holds a null byte'
        hint = f'{named}check the path and its permissions'
        raise _fault(name, 1, 1, f'cannot read this file: {reason}', hint) from None
    if len(data) > MAX_BYTES:
        raise _fault(name, 1, 1, f'this file is larger than {MAX_BYTES >> 20} MiB', 'split it into several rule files')
    try:
        return data.decode('utf-8-sig')
    except UnicodeDecodeError as error:
        line, column = _count(data[: error.start].decode('utf-8', 'replace'))
        message = f'byte 0x{data[error.start]:02x} is not UTF-8'
        raise _fault(name, line, column, message, 'save the file as UTF-8') from None


def parse(text: str, path: str) -> Fields:
    """The mapping that a rule file must be.

    Args:
        text: What `read` returned.
        path: Named in errors.

    Raises:
        RuleErrors: The text is not YAML, is empty, repeats a key, or is not a mapping at its top.
    """
    root = _compose(text, path)
    if root is None:
        raise _fault(path, 1, 1, 'this file is empty', _SHAPE)
    builder = _Builder(text, path)
    node = builder.build(root)
    if builder.errors:
        raise RuleErrors(sorted(builder.errors))
    if not isinstance(node, Fields):
        what = 'a list' if isinstance(node, Items) else 'a single value'
        message = f'a rule file is a mapping of keys to values; this is {what}'
        raise _fault(path, node.place.line, node.place.column, message, _SHAPE)
    return node


_SHAPE = 'a rule file starts with `framework: my_trainer` and holds `rules:`, a list'


def _fault(path: str, line: int, column: int, message: str, *hints: str) -> RuleErrors:
    return RuleErrors([RuleError(path, line, column, message, hints)])


def _count(before: str) -> tuple[int, int]:
    """The line and column that follow the text `before`, counted from 1."""
    return before.count('\n') + 1, len(before) - (before.rfind('\n') + 1) + 1


def _compose(text: str, path: str) -> yaml.Node | None:
    fast = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
    for loader in (fast, yaml.SafeLoader):
        try:
            # The stubs leave the stream and the result of compose() open.
            return cast('yaml.Node | None', yaml.compose(text, Loader=loader))  # pyright: ignore[reportUnknownMemberType]
        except (yaml.YAMLError, RecursionError) as error:
            # The C parser words errors in its own way: those shown come from the other one, the same everywhere.
            if loader is yaml.SafeLoader:
                raise _yaml_fault(error, text, path) from None
    return None


def _yaml_fault(error: yaml.YAMLError | RecursionError, text: str, path: str) -> RuleErrors:
    if isinstance(error, yaml.MarkedYAMLError):
        problem = error.problem or 'this is not valid YAML'
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        context = error.context or ''
        for sign, message, hint in _EXPLAINED:
            if sign in f'{context} {problem}':
                return _fault(path, line, column, message, hint)
        where = f'{context}, ' if context else ''
        return _fault(path, line, column, f'this is not valid YAML: {where}{problem}', _QUOTES)
    if isinstance(error, yaml.reader.ReaderError):
        line, column = _count(text[: error.position])
        character = error.character if isinstance(error.character, int) else ord(error.character[:1])
        return _fault(path, line, column, f'character U+{character:04X} is not allowed in YAML', 'remove it')
    return _fault(path, 1, 1, 'this file is nested too deeply', 'a rule file needs five levels at most')


_QUOTES = 'text with any of  : # { } [ ] * & ! %  in it is best put in quotes'
# What PyYAML says, what we say, and the way out.
_EXPLAINED = (
    ("'\\t'", 'a tab is used for indentation or spacing', 'YAML takes spaces only here'),
    ('cannot start any token', 'this character cannot start a value', 'put the text in quotes'),
    ('expected a single document', 'a second document starts here (`---`)', 'a rule file holds one document'),
    (
        'mapping values are not allowed',
        'a `:` starts a second value on this line',
        'put text that contains `: ` in quotes',
    ),
    ('found undefined alias', 'YAML reads text that starts with `*` as an alias', 'put it in quotes: "*"'),
    ('while scanning an alias', 'YAML reads text that starts with `*` as an alias', 'put it in quotes: "*"'),
    (
        'while parsing a flow mapping',
        'a `{...}` mapping is not closed or not separated by commas here',
        'inside `{...}`, text that contains braces or commas needs quotes: {name: "rl.{algorithm}.step"}',
    ),
    ('while parsing a flow sequence', 'a `[...]` list is not closed or not separated by commas here', _QUOTES),
    ('while scanning a quoted scalar', 'a quoted text is not closed', 'add the closing quote'),
    ('while scanning a simple key', 'a key without its `:`', 'write `key: value`'),
    (
        'expected <block end>',
        'this line is not indented like its neighbours',
        'keys of one mapping start in one column; a value that begins with `{` needs quotes: name: "{label}.step"',
    ),
)

_TAG = 'tag:yaml.org,2002:'
_SCALAR_TAGS = frozenset(_TAG + name for name in ('str', 'int', 'float', 'bool', 'null', 'timestamp', 'value', 'merge'))


class _Builder:
    """Turns the parser's nodes into ours; collects what YAML allows and a rule file does not."""

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self.errors: list[RuleError] = []
        # Not splitlines(): the parser counts fewer characters as line breaks than Python does.
        self.lines = text.replace('\r\n', '\n').replace('\r', '\n').split('\n')
        # An alias repeats a node: built once, so that a file of aliases costs no more than its length.
        self.built: dict[int, Node] = {}
        self.open: set[int] = set()

    def fault(self, place: Place, message: str, *hints: str) -> None:
        self.errors.append(RuleError(self.path, place.line, place.column, message, hints))

    def build(self, node: yaml.Node) -> Node:
        done = self.built.get(id(node))
        if done is not None:
            return done
        place = Place(node.start_mark.line + 1, node.start_mark.column + 1)
        if id(node) in self.open:
            self.fault(place, 'this anchor contains an alias to itself', 'write the value out')
            return Scalar(None, '', place, None)
        self.open.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            result: Node = self.scalar(node, place)
        elif isinstance(node, yaml.SequenceNode):
            self.check_tag(node, place, _TAG + 'seq')
            result = Items(tuple(self.build(item) for item in node.value), place)
        else:
            assert isinstance(node, yaml.MappingNode)
            self.check_tag(node, place, _TAG + 'map')
            result = Fields(tuple(self.pairs(node)), place)
        self.open.discard(id(node))
        self.built[id(node)] = result
        return result

    def check_tag(self, node: yaml.Node, place: Place, *allowed: str) -> None:
        if node.tag not in allowed:
            self.fault(place, f'the tag `{node.tag.replace(_TAG, "!!")}` is not allowed', 'remove it')

    def scalar(self, node: yaml.ScalarNode, place: Place) -> Scalar:
        self.check_tag(node, place, *_SCALAR_TAGS)
        kind, text = node.tag.removeprefix(_TAG), node.value
        value: str | int | float | bool | None = text
        construct = yaml.constructor.SafeConstructor()
        try:
            if kind == 'int':
                value = construct.construct_yaml_int(node)
            elif kind == 'float':
                value = construct.construct_yaml_float(node)
            elif kind == 'bool':
                value = construct.construct_yaml_bool(node)
            elif kind == 'null':
                value = None
        except (ValueError, KeyError):
            self.fault(place, f'`{text}` is not a value of type {kind}', 'put it in quotes if text is meant')
        if any('\ud800' <= character <= '\udfff' for character in text):
            self.fault(place, 'this text holds half a character', 'remove the `\\ud...` escape')
        return Scalar(value, text, place, self.text_column(node))

    def text_column(self, node: yaml.ScalarNode) -> int | None:
        start, end = node.start_mark, node.end_mark
        if start.line != end.line or start.line >= len(self.lines):
            return None
        shown = self.lines[start.line][start.column : end.column]
        if shown == node.value:
            return start.column + 1
        return start.column + 2 if shown[1:-1] == node.value else None

    def pairs(self, node: yaml.MappingNode) -> Iterator[tuple[Scalar, Node]]:
        seen: dict[str, int] = {}
        merged: list[Fields] = []
        for key_node, value_node in node.value:
            key = self.build(key_node)
            value = self.build(value_node)
            if not isinstance(key, Scalar):
                self.fault(key.place, 'a key must be text, not a list or a mapping', 'write `key: value`')
            elif key_node.tag == _TAG + 'merge':
                merged += self.merged(value)
            elif key.text in seen:
                self.fault(key.place, f'key `{key.text}` is given twice', f'the first one is on line {seen[key.text]}')
            else:
                seen[key.text] = key.place.line
                yield key, value
        for fields in merged:
            for key, value in fields.pairs:
                if key.text not in seen:
                    seen[key.text] = key.place.line
                    yield key, value

    def merged(self, value: Node) -> list[Fields]:
        values = value.items if isinstance(value, Items) else (value,)
        mappings = [item for item in values if isinstance(item, Fields)]
        if len(mappings) != len(values):
            self.fault(value.place, '`<<` takes a mapping or a list of mappings', 'write `<<: *anchor`')
        return mappings
