# SPDX-License-Identifier: Apache-2.0
"""The span groups and presets every rule file starts from; a file's own `groups` and `presets` extend or override them.

The names are those NeMo-RL documents, so a spec that works there works here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    Groups = dict[str, str | None]
    Presets = dict[str, tuple[str, ...] | str]

BUCKETS = ('productive', 'overhead', 'idle', 'wasted')
"""Where a span's time goes in the goodput account. A group without a bucket is an umbrella: its spans hold others."""

GROUPS: Groups = {
    'job': None,
    'step': None,
    'setup': None,
    'model_init': None,
    'evaluate': None,
    'rollout': None,
    'per_prompt': None,
    # Waits of several kinds; a rule says which of them are idle time, with its own `bucket`.
    'efficiency': None,
    # What a process asks of Ray: waiting for results (whose phase it is, the span around it says), and submitting.
    'wait': None,
    'remote': None,
    'generation': 'productive',
    'reward': 'productive',
    'policy_update': 'productive',
    'forward_backward': 'productive',
    'optimizer': 'productive',
    'data_processing': 'overhead',
    'data_plane': 'overhead',
    'checkpoint': 'overhead',
    'load_checkpoint': 'overhead',
    'logprob': 'overhead',
    'advantage': 'overhead',
    'reference_policy': 'overhead',
}

PRESETS: Presets = {
    'default': ('job', 'checkpoint', 'evaluate', 'setup', 'model_init'),
    # Without `job`: a step that nothing encloses starts a trace of its own, and one step is what a backend can show.
    'per_step': (
        'step',
        'checkpoint',
        'evaluate',
        'setup',
        'model_init',
        'rollout',
        'generation',
        'logprob',
        'reward',
        'advantage',
        'policy_update',
        'data_processing',
        'data_plane',
        'efficiency',
        'wait',
    ),
    'all': '*',
}
