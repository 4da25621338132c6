# SPDX-License-Identifier: Apache-2.0
"""Which site a `vllm` rule has at which function of vLLM."""

from __future__ import annotations

from lens_auto.vllm.batches import BatchSite
from lens_auto.vllm.engines import EngineSite
from lens_auto.vllm.finished import AbortSite, BrokenSite, FinishSite
from lens_auto.vllm.requests import RequestAbortSite, RequestBrokenSite, RequestEndSite, RequestSite
from lens_auto.vllm.rpc import BroadcastSite, CallSite, ServeSite, WorkSite
from lens_auto.vllm.serving import HttpSite
from lens_auto.vllm.starting import StartSite
from lens_auto.vllm.statistics import StatisticsSite
from lens_auto.vllm.steps import IdleSite, SchedulerSite, StepSite
from lens_auto.vllm.tracing import HeadersSite, OptionsSite, StartupSite, TracerSite
from lens_auto.wrap.code import AFTER, AROUND, BEFORE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lens_auto.record.fault import Faults
    from lens_auto.record.recorder import Recorder
    from lens_auto.wrap.figures import Figures
    from lens_auto.wrap.site import Site

_ADDED, _ENDED = 'OutputProcessor.add_request', 'OutputProcessor._update_stats_from_finished'
_ABORTED, _BROKEN = 'OutputProcessor.abort_requests', 'OutputProcessor.propagate_error'
_OPTIONS = 'EngineArgs.create_engine_config'
_ENGINES = ('LLMEngine.__init__', 'AsyncLLM.__init__')
_LETTER = {BEFORE: 'b', AFTER: 'r', AROUND: 'w'}

_KINDS: dict[tuple[str, str], tuple[type[Site], str]] = {
    **{(on, engine): (EngineSite, AFTER) for on in ('request', 'finish') for engine in _ENGINES},
    **{('tracing', engine): (StartupSite, AROUND) for engine in _ENGINES},
    ('tracing', _OPTIONS): (OptionsSite, BEFORE),
    ('tracing', _ADDED): (HeadersSite, AFTER),
    ('tracing', 'init_otel_tracer'): (TracerSite, AROUND),
    ('statistics', _OPTIONS): (StatisticsSite, BEFORE),
    ('request', _ADDED): (RequestSite, BEFORE),
    ('finish', _ENDED): (FinishSite, AFTER),
    ('finish', _ABORTED): (AbortSite, BEFORE),
    ('finish', _BROKEN): (BrokenSite, BEFORE),
    ('http', 'Starlette.__call__'): (HttpSite, AROUND),
    ('call', 'SyncMPClient._send_input'): (CallSite, BEFORE),
    ('call', 'AsyncMPClient._send_input_message'): (CallSite, BEFORE),
    ('call', 'EngineCoreProc._handle_client_request'): (ServeSite, AROUND),
    ('call', 'MultiprocExecutor.collective_rpc'): (BroadcastSite, BEFORE),
    ('call', 'WorkerProc._execute_worker_rpc'): (WorkSite, AROUND),
    ('batch', 'LLM.generate'): (BatchSite, AROUND),
    ('batch', 'LLM.chat'): (BatchSite, AROUND),
    ('scheduler', 'StatLoggerManager.record'): (SchedulerSite, BEFORE),
    ('step', 'EngineCore.step'): (StepSite, AROUND),
    ('step', 'EngineCore.step_with_batch_queue'): (StepSite, AROUND),
    ('step', 'EngineCoreProc._process_input_queue'): (IdleSite, BEFORE),
    ('execute', 'WorkerWrapperBase.execute_model'): (StepSite, AROUND),
}
_ENDS = {_ENDED: (RequestEndSite, AFTER), _ABORTED: (RequestAbortSite, BEFORE), _BROKEN: (RequestBrokenSite, BEFORE)}


class Sites:
    """Makes the sites of `vllm` rules; keeps what those of one rule share."""

    def __init__(self, recorder: Recorder, faults: Faults):
        """See the class.

        Args:
            recorder: The process's recorder.
            faults: Its fault count.
        """
        self._recorder = recorder
        self._faults = faults
        self._requests: dict[str, RequestSite] = {}

    def site(self, rule: dict[str, Any], qualname: str, figures: Figures) -> tuple[Site, str, str]:
        """The site of a rule at a function, how it is told of calls, and the last letter of its runtime key.

        Args:
            rule: The compiled rule.
            qualname: The function.
            figures: The rule's counts.
        """
        common = (rule, None, figures, self._recorder, self._faults)
        if rule['on'] == 'start':
            return StartSite(qualname, *common), AROUND, _LETTER[AROUND]
        if rule['on'] == 'request' and qualname in _ENDS:
            # All of an output processor's methods are in one module; the first of them that is patched is the first.
            kind, how = _ENDS[qualname]
            return kind(self._request(common), *common), how, _LETTER[how]
        made, how = _KINDS[rule['on'], qualname]
        site = self._request(common) if made is RequestSite else made(*common)
        return site, how, _LETTER[how]

    def _request(self, common: tuple[Any, ...]) -> RequestSite:
        key: str = common[0]['key']
        site = self._requests.get(key)
        if site is None:
            site = self._requests[key] = RequestSite(*common)
        return site
