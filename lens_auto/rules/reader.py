# SPDX-License-Identifier: Apache-2.0
"""Reads a rule file's values as what they should be, and collects a fault with place and way out for each that is not.

A reader never stops at a fault: it returns a harmless stand-in, so that one run shows all there is to correct.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from . import expression, target, template
from .document import Fields, Items, Node, Place, Scalar
from .errors import RuleError, closest, suggestion
from .expression import ExpressionError, Tree
from .model import Keys, Pair, Target
from .target import TargetError

T = TypeVar('T')

_ATTRIBUTE = re.compile(r'[A-Za-z][\w.\-/]{0,127}')
_GLOB = re.compile(r'[\w.*?]+')
_NOTHING: Tree = ('c', None)


def shown(node: Node) -> str:
    """A value as an error names it."""
    if isinstance(node, Items):
        return 'a list'
    if isinstance(node, Fields):
        return 'a mapping'
    if node.value is None:
        return 'nothing'
    kind = 'the boolean ' if isinstance(node.value, bool) else '' if isinstance(node.value, str) else 'the number '
    return f'{kind}`{node.text}`'


class Reader:
    """The typed readers, and the faults found so far.

    Attributes:
        path: The file, as errors name it.
        errors: The faults.
        var_roots: For each name under `vars`: what its value, and the vars in it, start from.
        vocabularies: The file's; a name may differ between them.
        captures: The names that the pattern of the rule being read captures.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.errors: list[RuleError] = []
        self.var_roots: dict[str, frozenset[str]] = {}
        self.vocabularies: tuple[str, ...] = ()
        self.captures: tuple[str, ...] = ()

    def fault(self, place: Place | Node, message: str, *hints: str) -> None:
        """Note a fault."""
        at = place if isinstance(place, Place) else place.place
        self.errors.append(RuleError(self.path, at.line, at.column, message, tuple(filter(None, hints))))

    def fields(self, node: Node, keys: Keys, what: str) -> dict[str, Node]:
        """The values of a mapping with known keys. `what` names it with its article: `a function rule`."""
        if not isinstance(node, Fields):
            self.fault(node, f'{what} must be a mapping, not {shown(node)}', f'keys here: {", ".join(sorted(keys))}')
            return {}
        values: dict[str, Node] = {}
        given = {name.text for name, _ in node.pairs}
        for name, value in node.pairs:
            if name.text not in keys:
                # A misspelt key is not also a missing one.
                given.add(closest(name.text, keys))
                self.fault(name, f'unknown key `{name.text}` in {what}', suggestion(name.text, keys, 'Keys here'))
            elif isinstance(value, Scalar) and value.value is None and keys[name.text].holds != 'bucket':
                self.fault(
                    name, f'`{name.text}` has no value', f'give it one or remove it: {_plain(keys[name.text].doc)}'
                )
            else:
                values[name.text] = value
        for name, key in keys.items():
            if key.required and name not in given:
                self.fault(node, f'{what} needs `{name}`', f'{name}: {_plain(key.doc)}')
        return values

    def named(self, values: dict[str, Node], key: str) -> Fields | None:
        """The mapping with free keys under `key`."""
        node = values.get(key)
        if node is None or isinstance(node, Fields):
            return node
        self.fault(node, f'`{key}` must be a mapping, not {shown(node)}', 'write `name: value`, a line each')
        return None

    def text(self, values: dict[str, Node], key: str) -> str | None:
        """A text."""
        node = values.get(key)
        return None if node is None else self.as_text(node, f'`{key}`')

    def as_text(self, node: Node, what: str) -> str | None:
        """A node that must be a text."""
        if isinstance(node, Scalar) and isinstance(node.value, str):
            return node.value
        quotes = f'put it in quotes: "{node.text}"' if isinstance(node, Scalar) and node.text else 'write one text'
        self.fault(node, f'{what} must be text, not {shown(node)}', quotes)
        return None

    def matching(self, values: dict[str, Node], key: str, accepts: Callable[[str], object], hint: str) -> str | None:
        """A text of a certain form."""
        text = self.text(values, key)
        if text is not None and not accepts(text):
            self.fault(values[key], f'`{key}: {text}` is not a name that can be used here', hint)
            return None
        return text

    def flag(self, values: dict[str, Node], key: str, default: bool) -> bool:
        """A boolean."""
        node = values.get(key)
        if node is None:
            return default
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        self.fault(node, f'`{key}` must be true or false, not {shown(node)}', 'write true or false, without quotes')
        return default

    def count(self, values: dict[str, Node], key: str) -> int | None:
        """A whole number from 1."""
        node = values.get(key)
        if node is None:
            return None
        if isinstance(node, Scalar) and type(node.value) is int and node.value > 0:
            return node.value
        self.fault(node, f'`{key}` must be a whole number from 1 on, not {shown(node)}', 'remove it for no limit')
        return None

    def choice(self, values: dict[str, Node], key: str, known: Sequence[str]) -> str | None:
        """One of a few words."""
        text = self.text(values, key)
        if text is not None and text not in known:
            self.fault(values[key], f'`{key}` cannot be `{text}`', suggestion(text, known, 'It can be'))
            return None
        return text

    def texts(self, values: dict[str, Node], key: str) -> tuple[str, ...] | None:
        """A text or a list of texts."""
        node = values.get(key)
        if node is None:
            return None
        items = node.items if isinstance(node, Items) else (node,)
        if not items:
            self.fault(node, f'`{key}` is an empty list', 'name at least one, or remove the key')
        texts = (self.as_text(item, f'`{key}`') for item in items)
        return tuple(text for text in texts if text is not None)

    def globs(self, values: dict[str, Node], key: str) -> tuple[str, ...] | None:
        """A module name with wildcards, or a list of them."""
        texts = self.texts(values, key)
        for text in texts or ():
            if not _GLOB.fullmatch(text):
                self.fault(values[key], f'`{key}`: `{text}` is not a module name', 'write for example `my_trainer.*`')
        return texts

    def targets(self, values: dict[str, Node], key: str) -> tuple[Target, ...]:
        """A target or a list of alternatives."""
        return self._targets(values, key, target.parse)

    def places(self, values: dict[str, Node], key: str) -> tuple[Target, ...]:
        """A place in the source or a list of alternatives."""
        return self._targets(values, key, target.parse_place)

    def pairs(self, values: dict[str, Node], key: str) -> tuple[Pair, ...]:
        """A start/stop pair or a list of them."""
        return self._targets(values, key, target.parse_pair)

    def _targets(self, values: dict[str, Node], key: str, parse: Callable[[str], T]) -> tuple[T, ...]:
        node = values.get(key)
        if node is None:
            return ()
        items = node.items if isinstance(node, Items) else (node,)
        if not items:
            self.fault(node, f'`{key}` is an empty list', 'name at least one `module:qualname`')
        parsed: list[T] = []
        for item in items:
            text = self.as_text(item, f'`{key}`')
            if text is None:
                continue
            try:
                one = parse(text)
            except TargetError as error:
                self.fault(item, error.message, error.hint)
                continue
            if one in parsed:
                self.fault(item, f'`{text}` is listed twice', 'remove one of the two')
            parsed.append(one)
        return tuple(parsed)

    def template(self, values: dict[str, Node], key: str, roots: Collection[str]) -> Tree | None:
        """A name template."""
        node = values.get(key)
        if node is None:
            return None
        return self.as_template(node, f'`{key}`', roots)

    def as_template(self, node: Node, what: str, roots: Collection[str]) -> Tree | None:
        """A node that must be a name template, or one for each vocabulary."""
        if not isinstance(node, Fields) or not self.vocabularies:
            return None if self.as_text(node, what) is None else self._tree(node, template.parse, roots)
        given = {word.text: value for word, value in node.pairs}
        for word, _ in node.pairs:
            if word.text not in self.vocabularies:
                hint = suggestion(word.text, self.vocabularies, 'Vocabularies')
                self.fault(word, f'`{word.text}` is no vocabulary of this file', hint)
        missing = [word for word in self.vocabularies if word not in given]
        if missing:
            self.fault(node, f'{what} has no name for the vocabulary `{missing[0]}`', 'give it one for each')
        for word, value in given.items():
            if isinstance(value, Fields):
                self.fault(value, f'{what} for `{word}` must be text, not a mapping', 'write one name')
        plain = {word: value for word, value in given.items() if not isinstance(value, Fields)}
        trees = {word: self.as_template(plain[word], what, roots) for word in self.vocabularies if word in plain}
        return ('word', {word: tree for word, tree in trees.items() if tree is not None})

    def expression(self, values: dict[str, Node], key: str, roots: Collection[str]) -> Tree | None:
        """An expression, or a number or boolean that stands for itself."""
        node = values.get(key)
        return None if node is None else self.as_expression(node, f'`{key}`', roots)

    def as_expression(self, node: Node, what: str, roots: Collection[str]) -> Tree:
        """A node that must be an expression."""
        if not isinstance(node, Scalar) or node.value is None:
            self.fault(node, f'{what} must be an expression, not {shown(node)}', 'write for example `arg.step`')
            return _NOTHING
        if not isinstance(node.value, str):
            return ('c', node.value)
        return self._tree(node, expression.parse, roots) or _NOTHING

    def attributes(self, values: dict[str, Node], key: str, roots: Collection[str]) -> dict[str, Tree]:
        """Attribute names, each with an expression."""
        node = self.named(values, key)
        trees: dict[str, Tree] = {}
        for name, value in node.pairs if node else ():
            if not _ATTRIBUTE.fullmatch(name.text):
                message = f'`{name.text}` is not an attribute name'
                self.fault(name, message, 'use letters, digits, `.`, `_` and `-`, a letter first: `rl.iteration`')
            if isinstance(value, Scalar) and value.text.strip() == 'None':
                self.fault(value, f'`{name.text}` would never have a value', 'remove it')
            trees[name.text] = self.as_expression(value, f'`{name.text}`', roots)
        return trees

    def _tree(self, node: Node, parse: Callable[[str], Tree], roots: Collection[str]) -> Tree | None:
        assert isinstance(node, Scalar) and isinstance(node.value, str)
        try:
            tree = parse(node.value)
        except ExpressionError as error:
            self.inside(node, error.column, error.message, error.hint)
            return None
        for part in expression.walk(tree):
            self._check_root(node, part, roots)
        return tree

    def _check_root(self, node: Scalar, part: Tree, roots: Collection[str]) -> None:
        head = part[0]
        if head == 'var':
            name: str = part[1]
            known = {*self.var_roots, *roots}
            if name not in self.var_roots:
                quoted = f'text is written with quotes of its own: "\'{name}\'"'
                self.inside(
                    node,
                    _find(name, node.text),
                    f'`{name}` is not known here',
                    suggestion(name, known, 'Known'),
                    '' if '{' in node.text else quoted,
                )
                return
            wrong = sorted(self.var_roots[name] - set(roots))
            via = f' (in the var `{name}`)'
        elif head == 'match' and head in roots and part[1] not in self.captures:
            hint = suggestion(part[1], self.captures, 'Captured') if self.captures else 'name one: `for $i in ...:`'
            at = max(node.text.find(f'match.{part[1]}'), 0)
            self.inside(node, at, f'`match.{part[1]}`: the pattern captures no `${part[1]}`', hint)
            return
        elif head in expression.ROOTS and head not in roots:
            name, wrong, via = head, [head], ''
        else:
            return
        for root in wrong:
            hint = f'here: {", ".join(sorted(roots))}, and the names under `vars`'
            self.inside(node, _find(name, node.text), f'`{root}`{via} has no value here', hint)

    def inside(self, node: Scalar, column: int, message: str, *hints: str) -> None:
        """Note a fault at a column of a text, counted from 0."""
        if node.text_column is None:
            self.fault(node, f'{message} (character {column + 1} of the text)', *hints)
        else:
            self.fault(Place(node.place.line, node.text_column + column), message, *hints)


def _find(name: str, text: str) -> int:
    found = re.search(rf'(?<![\w.]){re.escape(name)}\b', text)
    return found.start() if found else 0


def _plain(doc: str) -> str:
    return doc[0].lower() + doc[1:].rstrip('.')
