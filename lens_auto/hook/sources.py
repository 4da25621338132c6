# SPDX-License-Identifier: Apache-2.0
"""Which modules of this process have their source changed by rules, and the code they then execute.

Only where the module's real loader would compile the source as it is in the file: what another import hook makes of it
(pytest's assertions, a type checker's guards) is that hook's own, and such a module runs untouched. In a second process
the code comes from the cache, and neither a syntax tree nor the rewriter is loaded.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib_external import SourceFileLoader

from lens_auto.hook import bytecode
from lens_auto.hook.shown import module_of
from lens_auto.hook.wanted import MAIN, Wanted
from lens_auto.record.foreign import foreign
from lens_auto.record.format import MISSING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, ModuleType
    from typing import Any

    from lens_auto.hook.rewritten import Kept
    from lens_auto.record.recorder import Recorder

# What a loader of another class may not have an own version of.
_COMPILES = ('get_code', 'source_to_code', 'exec_module', 'get_data')


class Sources:
    """Makes the code of modules, and of what runs as `__main__`, by the rules that are about their source."""

    def __init__(
        self,
        by_module: dict[str, list[Wanted]],
        executed: dict[str, ModuleType],
        on: Callable[[dict[str, Any]], bool],
        wants: Callable[[dict[str, Any]], bool],
        put: Callable[[ModuleType, Wanted], None],
        put_rewritten: Callable[[ModuleType | None, Wanted], None],
        recorder: Recorder,
        folder: str,
    ):
        """See the class.

        Args:
            by_module: All that the rules name, by module or script; gets what they name in `__main__`.
            executed: The modules that have executed; gets `__main__`.
            on: Says of a rule whether it is on.
            wants: Says of a rule whether it may come to record in this process.
            put: Patches what a rule names in a module.
            put_rewritten: Tells what came of a rule on source.
            recorder: The process's recorder.
            folder: The bytecode cache; '' for none.
        """
        self._by_module = by_module
        self._executed = executed
        self._on = on
        self._wants = wants
        self._put = put
        self._put_rewritten = put_rewritten
        self._recorder = recorder
        self._folder = folder
        self._bound: set[str] = set()

    def of_module(self, name: str, loader: Any) -> CodeType | None:
        """The code a module is to execute, None where that is the loader's own.

        Args:
            name: The module.
            loader: Its loader.
        """
        edits = [wanted for wanted in self._by_module.get(name, ()) if wanted.rewrites and self._wants(wanted.rule)]
        if not edits:
            return None
        path, reason = _file(name, loader)
        # Asked before the file is read: what changes meanwhile is not in this state any more.
        state = bytecode.state(path) if self._folder and path else ''
        variant = self._variant(path, edits) if state else ''
        kept: Kept | None = None
        if state and (known := bytecode.noted(self._folder, variant, state)):
            kept = bytecode.fetch(self._folder, known)
        if kept is not None:
            return self._told(kept, path, edits)
        source, reason = (None, reason) if reason else _read(path, loader)
        if source is None:
            for wanted in edits:
                wanted.reason = reason
            return None
        code = self._code(source, path, edits)
        if code is not None and state:
            bytecode.note(self._folder, variant, state, bytecode.entry(source, variant))
        return code

    def of_main(self, name: str, loader: Any) -> CodeType | None:
        """The code of a module that is run as `__main__`, None where that is the loader's own.

        Args:
            name: The module.
            loader: Its loader.
        """
        path, reason = _file(name, loader)
        source, reason = (None, reason) if reason else _read(path, loader)
        listed = self._of_main(name, path)
        if source is None:
            for wanted in listed:
                wanted.reason = reason
            self._started(listed)
            return None
        return self._main(source, path, listed)

    def of_script(self, path: str, without_first_line: bool) -> CodeType | None:
        """The code of a script, None where no rule is about it.

        Args:
            path: The script, absolute.
            without_first_line: Python was asked to leave that out.

        Raises:
            OSError: It cannot be read.
        """
        listed = self._of_main('', path)
        if not listed:
            return None
        with open(path, 'rb') as file:
            source = file.read()
        if without_first_line:
            source = source[source.find(b'\n') :] if b'\n' in source else b''
        return self._main(source, path, listed)

    def _of_main(self, name: str, path: str) -> list[Wanted]:
        """What the rules name in the program itself: by its path, and by the module it is."""
        ends = ('/' + os.path.abspath(path), '/' + os.path.realpath(path))
        found: list[Wanted] = []
        for module, listed in self._by_module.items():
            if module == name or (module.endswith('.py') and any(end.endswith('/' + module) for end in ends)):
                found += [wanted.of_main() for wanted in listed if self._wants(wanted.rule)]
        self._by_module[MAIN] = found
        self._bound.clear()
        return found

    def _main(self, source: bytes, path: str, listed: list[Wanted]) -> CodeType | None:
        edits = [wanted for wanted in listed if wanted.rewrites]
        # Nobody is told when a program has defined a function: its code says so itself.
        defined = [wanted for wanted in listed if not wanted.is_place]
        code = self._code(source, path, edits, defined) if listed else None
        self._started(listed)
        return code

    def _code(self, source: bytes, path: str, edits: list[Wanted], defined: list[Wanted] | None = None) -> Any:
        main, defined = defined is not None, defined or []
        names = _names(defined)
        entry = bytecode.entry(source, self._variant(path, edits, names)) if self._folder else ''
        kept: Kept | None = bytecode.fetch(self._folder, entry) if entry else None
        if kept is None:
            from lens_auto.hook.rewritten import make

            try:
                kept, lasting = make(source, path, edits, names, main)
            except (SyntaxError, ValueError, RecursionError) as error:
                if foreign(error):
                    raise
                # As a rule the source has no code at all, and Python is about to say so.
                for wanted in (*edits, *defined):
                    wanted.reason = f'its source does not compile: {type(error).__name__}'
                return None
            if entry and lasting:
                bytecode.store(self._folder, entry, *kept)
        return self._told(kept, path, edits, defined)

    @staticmethod
    def _variant(path: str, edits: list[Wanted], names: tuple[str, ...] = ()) -> str:
        return bytecode.variant(path, ([wanted.spelled() for wanted in edits], names))

    def _told(self, kept: Kept, path: str, edits: list[Wanted], defined: Sequence[Wanted] = ()) -> CodeType:
        """The code; what became of each thing that the rules name is told."""
        code, (outcomes, bound) = kept
        for wanted, (places, reason) in zip(edits, outcomes, strict=True):
            wanted.places, wanted.reason = places, reason
        self._absent([wanted for wanted in defined if wanted.first not in bound], os.path.basename(path))
        return code

    def _started(self, listed: list[Wanted]) -> None:
        for wanted in listed:
            if wanted.is_place and self._on(wanted.rule):
                self._put_rewritten(None, wanted)

    def _absent(self, listed: list[Wanted], file: str) -> None:
        for wanted in listed:
            reason = f'no {wanted.first} in {file}'
            self._recorder.report(MISSING, {'key': wanted.rule['key'], 'target': wanted.target, 'reason': reason})

    def bound(self, name: str, namespace: dict[str, Any]) -> None:
        """The program that this process runs has bound a name: patch what rules that are on say of it.

        Args:
            name: The name.
            namespace: The program's globals.
        """
        module = self._executed[MAIN] = module_of(namespace)
        self._bound.add(name)
        for wanted in self._by_module.get(MAIN, ()):
            if wanted.first == name and not wanted.is_place and self._on(wanted.rule):
                self._put(module, wanted)

    def is_there(self, wanted: Wanted) -> bool:
        """False for what the program that runs has not yet defined.

        Args:
            wanted: What a rule names.
        """
        return wanted.module != MAIN or wanted.is_place or wanted.first in self._bound


def _names(defined: list[Wanted]) -> tuple[str, ...]:
    return tuple(sorted({wanted.first for wanted in defined}))


def _file(name: str, loader: Any) -> tuple[str, str]:
    """A module's file, and why its source cannot be had, '' if it can."""
    kind: type[Any] = type(loader)  # pyright: ignore[reportUnknownVariableType]
    archive: Any = getattr(sys.modules.get('zipimport'), 'zipimporter', None)
    plain = next((base for base in (SourceFileLoader, archive) if base is not None and issubclass(kind, base)), None)
    if plain is None:
        return '', _why_not(kind)
    if any(getattr(kind, part, None) is not getattr(plain, part, None) for part in _COMPILES):
        return '', f'{kind.__module__}.{kind.__qualname__} compiles it in its own way'
    try:
        path: str = loader.get_filename(name)
    except (OSError, ImportError) as error:
        return '', _unreadable(error)
    return path, '' if path.endswith('.py') else 'there is only its bytecode'


def _read(path: str, loader: Any) -> tuple[bytes | None, str]:
    """A module's source, or why it cannot be read."""
    try:
        return loader.get_data(path), ''
    except (OSError, ImportError) as error:
        return None, _unreadable(error)


def _unreadable(error: Exception) -> str:
    if foreign(error):
        raise error
    return f'its source cannot be read: {type(error).__name__}'


def _why_not(kind: type[Any]) -> str:
    if kind.__name__ == 'ExtensionFileLoader':
        return 'it is compiled: it has no source that could be changed'
    if kind.__name__ == 'SourcelessFileLoader':
        return 'there is only its bytecode'
    return f'{kind.__module__}.{kind.__qualname__} loads it in its own way'
