# SPDX-License-Identifier: Apache-2.0
"""Builds the site of a rule at a place found: which kind of site, which code around the function, which key."""

from __future__ import annotations

from lens_auto.wrap.annotate import AnnotateSite
from lens_auto.wrap.code import AFTER, AROUND, BEFORE, HELD, Patch, Signature
from lens_auto.wrap.context_manager import ContextSite, TimerContextSite
from lens_auto.wrap.figures import Figures
from lens_auto.wrap.inside import InsideSite
from lens_auto.wrap.interval import IntervalSite
from lens_auto.wrap.logger import LoggerSite
from lens_auto.wrap.metric import MetricSite
from lens_auto.wrap.readers import Readers
from lens_auto.wrap.resource import ResourceSite
from lens_auto.wrap.site import Site
from lens_auto.wrap.timer import Labels, TimerSite
from lens_auto.wrap.within import WithinSite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from lens_auto.hook.native import Native
    from lens_auto.hook.resolve import Place
    from lens_auto.hook.wanted import Wanted
    from lens_auto.ray.tasks import Tasks
    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.rewrite.key import Key
    from lens_auto.vllm.sites import Sites
    from lens_auto.wrap.place_site import PlaceSite

_SPANLESS = ('logger', 'metric', 'annotate', 'resource')
_GENERATES = 0x20 | 0x200  # CO_GENERATOR | CO_ASYNC_GENERATOR
# The last letter of a runtime key tells `Runtime.after` which of a site's methods a call belongs to.
_LETTER = {'': 'r', 'with': 'w', 'start': 's', 'stop': 'e', 'lap': 'l'}


class Builder:
    """Makes sites; keeps what the sites of one rule share.

    Attributes:
        tasks: The tasks of Ray that this process submits and runs; None until a module of Ray has executed.
        traces_engines: The setting `vllm_native_tracing`.
    """

    def __init__(
        self,
        plan: dict[str, Any],
        recorder: Recorder,
        faults: Faults,
        figures: dict[str, Figures],
        resettle: Callable[[Any], None],
        native: Native,
    ):
        """See the class.

        Args:
            plan: The compiled plan.
            recorder: The process's recorder.
            faults: Its fault count.
            figures: Counts by rule key.
            resettle: See `ResourceSite`.
            native: What frameworks record by themselves.
        """
        self._native = native
        self._rules: list[dict[str, Any]] = plan['rules']
        self._files: list[dict[str, Any]] = plan['files']
        self._recorder = recorder
        self._faults = faults
        self._figures = figures
        self._resettle = resettle
        self._groups: tuple[frozenset[str], ...] = ()
        self._traces = self._metrics = self._resources = False
        self._labels: dict[str, Labels] = {}
        self._codes: dict[str, list[CodeType]] = {}
        self._opened: dict[str, dict[Any, Any]] = {}
        self.tasks: Tasks | None = None
        self.traces_engines = False
        self._engines: Sites | None = None

    def select(self, groups: tuple[frozenset[str], ...], traces: bool, metrics: bool, resources: bool) -> None:
        """What is on; see `Patches.select`."""
        self._groups = groups
        self._traces, self._metrics, self._resources = traces, metrics, resources
        for rule in self._rules:
            labels = self._labels.get(rule['key'])
            if labels is not None:
                self._choose(rule, labels)

    def opened(self, key: str) -> dict[Any, Any]:
        """The spans of a timer or interval rule that have begun and not ended, by timer and label.

        Args:
            key: The rule's key.
        """
        return self._opened.get(key, {})

    def on(self, rule: dict[str, Any]) -> bool:
        """True when a rule is on: a site that is off is not patched at all.

        Args:
            rule: A compiled rule.
        """
        kind = rule['kind']
        if rule['native'] and self._native.records(rule['file']):
            return False
        if kind == 'resource':
            # Without a config to read, it describes what nobody would see of a process that records nothing.
            return self._resources and (rule['settings'] is not None or self._traces or self._metrics)
        if kind in ('logger', 'metric'):
            return self._metrics and self._in_group(rule, rule['group'])
        if kind == 'vllm':
            if rule['on'] == 'tracing' and not self.traces_engines:
                return False
            return (self._metrics if rule['points'] else self._traces) and self._in_group(rule, rule['group'])
        if kind == 'timer':
            return self._traces and self._labels_of(rule).any()
        return self._traces and self._in_group(rule, rule['group'])

    def _in_group(self, rule: dict[str, Any], group: str | None) -> bool:
        return group is None or group in self._groups[rule['file']]

    def _variables(self, rule: dict[str, Any]) -> dict[str, dict[str, Any]]:
        index: int = rule['file']
        return self._files[index]['vars']

    def _labels_of(self, rule: dict[str, Any]) -> Labels:
        labels = self._labels.get(rule['key'])
        if labels is None:
            labels = self._labels[rule['key']] = Labels(rule, self._figures[rule['key']].seen)
            self._choose(rule, labels)
        return labels

    def _choose(self, rule: dict[str, Any], labels: Labels) -> None:
        native = self._native.records(rule['file'])
        labels.select(lambda entry: self._in_group(rule, entry['group']) and not (native and entry['native']))

    def build(self, wanted: Wanted, place: Place, key: str) -> dict[str, Site]:
        """Patch a place for a rule.

        Args:
            wanted: The rule's target.
            place: The functions found there.
            key: Prefix of the runtime keys.

        Returns:
            The sites made, by runtime key.

        Raises:
            Unwrappable, Unreadable, ValueError: It cannot be; nothing has changed.
        """
        rule, part = wanted.rule, wanted.part
        function = place.functions[0]
        signature = Signature(function.__code__)
        variables = self._variables(rule)
        passing = _own_names(rule, function.__module__) | place.decorators
        figures = self._figures[rule['key']]
        if rule['kind'] == 'ray':
            return self._of_ray(rule, figures, function, key)
        if rule['kind'] == 'http':
            return self._of_http(wanted, figures, function, key)
        if rule['kind'] == 'vllm':
            return self._of_vllm(wanted, figures, function, key)
        common = (figures, self._recorder, self._faults)
        kind = rule['kind']
        if kind in _SPANLESS:
            return self._spanless(rule, common, passing, place, signature, key)
        if kind == 'function':
            readers = Readers(rule, rule['group'], rule['bucket'], signature, variables)
            if place.context_class:
                return self._context(ContextSite(rule, readers, *common, passing), place, key)
            kind_of = _kind_of(rule)
            site: Site = kind_of(rule, readers, *common, passing, place.owned_by)
            return self._place(site, function, key + 'w', HELD if place.holds else AROUND)
        opened = self._opened.setdefault(rule['key'], {})
        if kind == 'interval':
            # The span of a start ... stop has what `start` was called with; `stop` may have other parameters.
            readers = None
            if part != 'stop':
                readers = Readers(rule, rule['group'], rule['bucket'], signature, variables)
            codes = self._codes.setdefault(rule['key'] + part, [])
            if function.__code__ not in codes:
                codes.append(function.__code__)
            site = IntervalSite(rule, readers, *common, passing, place.owned_by, opened, signature, codes)
            how = BEFORE if part == 'stop' and rule['stop_at'] == 'call' else AFTER
            return self._place(site, function, key + _LETTER[part], how)
        labels = self._labels_of(rule)
        if not place.context_class and function.__code__ not in labels.codes[part]:
            labels.codes[part].append(function.__code__)
        timer = (rule, *common, passing, place.owned_by, labels, opened, signature, variables)
        if part != 'with':
            return self._place(TimerSite(*timer), function, key + _LETTER[part], AFTER)
        if place.context_class:
            return self._context(TimerContextSite(*timer, from_self=True), place, key)
        return self._place(TimerSite(*timer), function, key + 'w', HELD if place.holds else AROUND)

    def place(self, rule: dict[str, Any], key: Key) -> PlaceSite:
        """The site of a place in changed source.

        Args:
            rule: Its rule.
            key: The place, as the source says it.
        """
        from lens_auto.wrap.place_site import PlaceSite

        figures = self._figures[rule['key']]
        return PlaceSite(rule, key, self._variables(rule), figures, self._recorder, self._faults)

    def _spanless(
        self,
        rule: dict[str, Any],
        common: tuple[Figures, Recorder, Faults],
        passing: frozenset[tuple[str, str]],
        place: Place,
        signature: Signature,
        key: str,
    ) -> dict[str, Site]:
        """Sites of the kinds that make no spans."""
        kind, function, owner, variables = rule['kind'], place.functions[0], place.owned_by, self._variables(rule)
        if kind == 'logger':
            logger = LoggerSite(rule, *common, owner, signature, variables)
            return self._place(logger, function, key + 'r', AFTER)
        if kind == 'resource':
            resource = ResourceSite(rule, *common, owner, signature, variables, self._resettle)
            return self._place(resource, function, key + 'r', AFTER)
        if kind == 'annotate':
            annotate = AnnotateSite(rule, *common, passing, owner, signature, variables)
            return self._place(annotate, function, key + 'r', AFTER)
        if function.__code__.co_flags & _GENERATES:
            raise ValueError('a metric rule measures calls, and this is a generator')
        metric = MetricSite(rule, *common, passing, owner, signature, variables)
        return self._place(metric, function, key + 'w', AROUND)

    def _of_ray(self, rule: dict[str, Any], figures: Figures, function: Any, key: str) -> dict[str, Site]:
        from lens_auto.ray.submits import SubmitSite
        from lens_auto.ray.waits import WaitSite

        assert self.tasks is not None, 'Ray was imported before its tasks were known'
        kind = SubmitSite if rule['on'] == 'call' else WaitSite
        return self._place(kind(rule, figures, self._recorder, self._faults, self.tasks), function, key + 'w', AROUND)

    def _of_http(self, wanted: Wanted, figures: Figures, function: Any, key: str) -> dict[str, Site]:
        from lens_auto.http.sites import site_at

        kind, how, letter = site_at(wanted.qualname)
        site = kind(wanted.rule, None, figures, self._recorder, self._faults)
        return self._place(site, function, key + letter, how)

    def _of_vllm(self, wanted: Wanted, figures: Figures, function: Any, key: str) -> dict[str, Site]:
        if self._engines is None:
            from lens_auto.vllm.sites import Sites

            self._engines = Sites(self._recorder, self._faults)
        site, how, letter = self._engines.site(wanted.rule, wanted.qualname, figures)
        return self._place(site, function, key + letter, how)

    def _place(self, site: Site, function: Any, key: str, how: str) -> dict[str, Site]:
        site.patches.append(Patch(function, key, how))
        return {key: site}

    def _context(self, site: Site, place: Place, key: str) -> dict[str, Site]:
        site.patches.append(Patch(place.functions[0], key + 's', AFTER))
        site.patches.append(Patch(place.functions[1], key + 'e', AFTER))
        return {key + 's': site, key + 'e': site}


def _kind_of(rule: dict[str, Any]) -> type[InsideSite | WithinSite | Site]:
    if rule['inside_bucket']:
        return InsideSite
    return WithinSite if rule['within'] or rule['outside'] else Site


def _own_names(rule: dict[str, Any], module: str) -> frozenset[tuple[str, str]]:
    """The methods of a timer or interval, as (module, function name): they call one another on the user's behalf."""
    names: set[str] = set()
    for part in ('with', 'pair', 'start', 'stop', 'lap'):
        for target in rule.get(part, ()):
            names.update(qualname.rpartition('.')[2] for qualname in target[1:])
    return frozenset((module, name) for name in names)
