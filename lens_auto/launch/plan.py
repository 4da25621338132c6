# SPDX-License-Identifier: Apache-2.0
"""The compiled rules of this run, and what the launcher itself reads in them."""

from __future__ import annotations

import os

from lens_auto.launch import own_path
from lens_auto.launch.environment import working_directory
from lens_auto.launch.refusal import Refusal
from lens_auto.rules import finding, plan, plan_cache
from lens_auto.rules.selection import UnknownGroup, select_all
from lens_auto.settings.fields import FIRST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from lens_auto.launch.arguments import Options
    from lens_auto.rules.plan_cache import Compiled
    from lens_auto.settings.resolve import Resolved


NAMED = ('--rules', 'LENS_RULES', finding.LOCAL_NAME)
"""Origins of a rule file that say its user meant this run."""


def obtain(options: Options, environ: Mapping[str, str], cache: str | None) -> Compiled:
    """The plan of this command, compiled now or taken from the cache.

    Args:
        options: The launcher's arguments.
        environ: Its environment.
        cache: The user's cache folder, or None.

    Raises:
        Refusal: A rule file is wrong.
    """
    from lens_auto import __version__

    sources = finding.sources(options.rules, environ, options.command, own_path.of_the_command())
    try:
        return plan_cache.compiled(sources, __version__, cache or '')
    except Exception as error:
        from lens_auto.rules.errors import RuleErrors

        if isinstance(error, RuleErrors):
            raise Refusal(f'the rules cannot be used\n{error}') from None
        raise


def frameworks(compiled: Compiled, command: list[str]) -> list[str]:
    """Frameworks this run may use, most specific first.

    A rule file the user named counts; any other one if its package lies where this Python or the command's script would
    find it, as far as that can be told before the command has chosen an interpreter. A built-in file of no package, as
    that of HTTP requests is, has to do with every run and is no framework of any.

    Args:
        compiled: The plan.
        command: The command and its arguments.
    """
    found = dict.fromkeys(
        framework
        for _, framework, package, origin in in_reach(compiled, command)
        if package is not None or origin != finding.BUILT_IN
    )
    # These are under a framework, and name a run only where there is nothing else to name it.
    return sorted(found, key=lambda framework: {'sglang': 1, 'vllm': 1, 'ray': 2}.get(framework, 0))


def in_reach(compiled: Compiled, command: list[str]) -> list[tuple[str, str, str | None, str]]:
    """The rule files this run may use; see `frameworks`.

    Args:
        compiled: The plan.
        command: The command and its arguments.

    Returns:
        Path, framework, package and origin of each.
    """
    script = finding.script(command)
    here = working_directory()
    beside = os.path.join(here, os.path.dirname(script)) if script else here
    folders = [folder for folder in (here, beside, *own_path.of_the_command()) if folder]
    return [
        (path, framework, package, origin)
        for path, framework, package, origin in compiled.files
        if origin in NAMED or package is None or any(_holds(folder, package) for folder in folders)
    ]


def _holds(folder: str, package: str) -> bool:
    path = f'{folder}/{package.partition(".")[0]}'
    return os.path.isdir(path) or os.path.isfile(f'{path}.py')


def check_groups(compiled: Compiled, resolved: Resolved) -> None:
    """Refuse a span group that no rule file knows; one in the run's own config is announced, and the default counts.

    Args:
        compiled: The plan.
        resolved: The settings.

    Raises:
        Refusal: There is such a group.
    """
    source = resolved.source('span_groups')
    if source.kind == 'default':
        return  # the defaults are known, and the plan need not be read here
    try:
        select_all(str(resolved.value('span_groups')), plan.load(compiled.path, compiled.sha256)['files'])
    except UnknownGroup as error:
        if not source.refuses:
            resolved.ignore('span_groups', f'span group `{error.token}` is not known')
            return
        from lens_auto.settings import redact

        near = error.nearest()
        raise Refusal(
            redact.text(f'span group `{error.token}` is not known\n    from {source.where}\n')
            + (f'    did you mean `{near}`?\n' if near else '')
            + f'    known groups: {", ".join(error.groups)}\n    presets: {", ".join(error.presets)}'
        ) from None


def check_vocabulary(compiled: Compiled, resolved: Resolved) -> None:
    """Refuse a vocabulary that no rule file has; one in the run's own config is announced, and the default counts.

    Args:
        compiled: The plan.
        resolved: The settings.

    Raises:
        Refusal: There is no such vocabulary.
    """
    chosen, source = str(resolved.value('vocabulary')), resolved.source('vocabulary')
    if chosen == FIRST:
        return
    files = plan.load(compiled.path, compiled.sha256)['files']
    known = sorted({word for file in files for word in file['vocabularies']})
    if chosen in known:
        return
    if not source.refuses:
        resolved.ignore('vocabulary', f'vocabulary `{chosen}` is not known')
        return
    raise Refusal(
        f'vocabulary `{chosen}` is not known\n    from {source.where}\n    known: {", ".join((FIRST, *known))}'
    )


def keep(compiled: Compiled, spool: str) -> None:
    """Put the plan beside the journals, where no clean-up of caches reaches it while the run is on.

    Args:
        compiled: The plan; it lies in the spool afterwards, or where it was if that cannot hold it.
        spool: The spool.
    """
    from lens_auto.collect.spool import keep_plan

    try:
        kept = keep_plan(spool, compiled.path)
    except OSError:
        return
    if compiled.problem:  # there is no cache: the plan has a folder to itself
        os.unlink(compiled.path)
        os.rmdir(os.path.dirname(compiled.path))
    compiled.path = kept


class Rules:
    """The plan for people.

    Attributes:
        rules: Of every rule its key, kind, group, name, targets and where it is written.
        groups_off: Groups that have rules and are not selected.
    """

    __slots__ = ('groups_off', 'rules')

    def __init__(self, rules: list[dict[str, Any]], groups_off: list[str]) -> None:
        self.rules = rules
        self.groups_off = groups_off


def near(compiled: Compiled, command: list[str]) -> frozenset[str]:
    """The rule files that have to do with a command: of the others, the rules would only hide those that matter.

    Args:
        compiled: The plan.
        command: The command and its arguments.

    Returns:
        Their paths.
    """
    return frozenset(path for path, *_ in in_reach(compiled, command))


def rules_of(compiled: Compiled, resolved: Resolved, of: Callable[[str], bool]) -> Rules:
    """The plan for people: `run.json` and `--info`.

    Args:
        compiled: The plan.
        resolved: The settings.
        of: Says of the path of a rule file whether its rules are wanted.
    """
    return rules_with(compiled, resolved, str(resolved.value('span_groups')), of)


def rules_with(compiled: Compiled, resolved: Resolved, spec: str, of: Callable[[str], bool]) -> Rules:
    """The plan for people, with other span groups than the launcher's: the program's own config may name some.

    Args:
        compiled: The plan.
        resolved: The settings.
        spec: Of one that names an unknown group nothing is left but the default, as in the program.
        of: Says of the path of a rule file whether its rules are wanted.
    """
    whole = plan.load(compiled.path, compiled.sha256, str(resolved.value('vocabulary')))
    try:
        selected = select_all(spec, whole['files'])
    except UnknownGroup:
        selected = select_all('default', whole['files'])
    rules: list[dict[str, Any]] = []
    off: set[str] = set()
    wanted = [of(file['path']) for file in whole['files']]
    for rule in whole['rules']:
        index: int = rule['file']
        if not wanted[index]:
            continue
        on = selected[index]
        groups = groups_of(rule)
        off |= groups - on
        labels: dict[str, dict[str, Any]] = rule.get('labels') or {}
        rules.append(
            {
                'key': rule['key'],
                'kind': rule['kind'],
                'group': rule['group'] or ', '.join(sorted(groups)),
                'name': spelled(rule['name']),
                'where': f'{whole["files"][rule["file"]]["path"]}:{rule["line"]}',
                'targets': targets_of(rule),
                # A rule without groups (a logger, a resource) is not selected by them.
                'on': not groups or bool(groups & on),
                'labels': [
                    pattern
                    for pattern, label in labels.items()
                    if not label['drop'] and (label['group'] is None or label['group'] in on)
                ],
                'keys': keys_of(rule),
                'marks': marks_of(rule),
            }
        )
    return Rules(rules, sorted(off.difference(*selected)))


def groups_of(rule: dict[str, Any]) -> set[str]:
    """The groups that switch a rule on: its own, and those of its labels.

    Args:
        rule: A rule of the plan.
    """
    labels: dict[str, dict[str, Any]] = rule.get('labels') or {}
    named: list[str | None] = [rule['group'], *(label['group'] for label in labels.values() if not label['drop'])]
    return {group for group in named if group}


def keys_of(rule: dict[str, Any]) -> list[list[str]]:
    """The metric keys of a logger rule; those that feed one metric (its names in several versions) together.

    Args:
        rule: A rule of the plan.
    """
    metrics: dict[str, dict[str, Any]] = rule.get('metrics') or {}
    found: dict[str, list[str]] = {}
    for pattern, metric in metrics.items():
        name = repr(metric['name'])
        # A name made of the key is another for each pattern.
        found.setdefault(pattern if "('key',)" in name else name, []).append(pattern)
    return list(found.values())


def marks_of(rule: dict[str, Any]) -> dict[str, str]:
    """What tells that a label or metric key occurred: the name of its span or metric, where that is fixed and its own.

    Args:
        rule: A rule of the plan.
    """
    found: dict[str, str] = {}
    shared: set[str] = set()
    labels: dict[str, dict[str, Any]] = rule.get('labels') or {}
    metrics: dict[str, dict[str, Any]] = rule.get('metrics') or {}
    for pattern, label in labels.items():
        if label['name'] and label['name'][0] == 'c':
            name = str(label['name'][1])
            if found.setdefault(name, pattern) != pattern:
                shared.add(name)
    for pattern, metric in metrics.items():
        if metric['name'] and metric['name'][0] == 'c':
            found.setdefault(str(metric['name'][1]), pattern)  # keys that feed one metric count together
    return {name: pattern for name, pattern in found.items() if name not in shared}


def targets_of(rule: dict[str, Any]) -> list[str]:
    """What a rule hooks, as a rule file spells it.

    Args:
        rule: A rule of the plan.
    """
    found: list[str] = []
    for role in ('targets', 'with', 'start', 'stop', 'lap', 'pair'):
        found += [f'{module}:{"/".join(names)}'.rstrip(':') for module, *names in rule.get(role) or ()]
    return found


def spelled(name: Any) -> str:
    """A name's expression as text, with `{...}` for what is only known at run time.

    Args:
        name: Its tree, or None.
    """
    if not name:
        return ''
    if name[0] == 'c':
        return str(name[1])
    if name[0] == 'fmt':
        return ''.join(spelled(part) for part in name[1])
    if name[0] in ('var', 'arg', 'env'):
        return f'{{{name[1]}}}'
    return '{' + str(name[0]) + '}'
