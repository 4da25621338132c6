# SPDX-License-Identifier: Apache-2.0
"""What names mean to a trainer: which span group a function, a timer label or a metric key speaks of.

The words are those of the trainers that were read to write the built-in rules; a name that fits none means nothing
here, which is better than a guess nobody can explain.
"""

from __future__ import annotations

import functools
import re

STEP = 'step'
JOB = 'job'
TRAINING = ('policy_update', 'forward_backward', 'optimizer')
"""Groups whose work is the training itself."""

STRONG = frozenset(('rollout', 'generation', 'reward', 'advantage', 'logprob', 'reference_policy', 'refit', *TRAINING))
"""Groups that say of a loop that it trains."""

WEAK = frozenset(('checkpoint', 'evaluate', 'log'))
"""Groups that training loops have, and others too."""

_WEIGHTS = r'(weights?|params?|parameters?|policy|model)'
# The first that fits counts: `save_model_weights` is a checkpoint, `compute_ref_log_prob` the reference policy's.
_GROUPS: tuple[tuple[str, str], ...] = (
    (STEP, r'(total_|full_|rl_|pipeline_|global_|one_|whole_)*(step|iteration|iter)(_total|_time|_once)*'),
    ('efficiency', r'(.*_)?(wait|waiting|idle|stall|bubble|starvation|backoff|blocked|pause|exposed)(_.*)?'),
    (
        'load_checkpoint',
        r'(.*_)?(load|restore|resume)_(from_)?(last_|latest_|best_)?(check_?points?|ckpts?|states?)(_.*)?',
    ),
    (
        'checkpoint',
        r'(.*_)?(save|dump|write|store)_.*(check_?point|ckpt|model|state|weights|hf|adapter).*'
        r'|(do_|maybe_|async_)?save|(do_|maybe_)?(check_?point|ckpt)(s|ing)?|(.*_)?save_(check_?point|ckpt|model|pretrained)s?(_.*)?',
    ),
    ('logprob', r'(.*_)?(policy|actor|old)_and_ref(erence)?_(.*_)?(log_?probs?|logps?)'),
    (
        'refit',
        r'(.*_)?refit(_.*)?'
        rf'|(.*_)?(sync|update|push|broadcast|transfer|publish|copy|swap|refresh|move|send|load)_(\w+_)?{_WEIGHTS}_?'
        r'(to|into|for|from)?_?(rollout|inference|vllm|sglang|engine|actor|generator|sampler|server|distributed|disk|tensor)s?(_.*)?'
        r'|(.*_)?(sync|update|push|broadcast|transfer|publish|refresh)_(\w+_)?(weights|params|parameters)(_.*)?'
        r'|broadcast_to_(vllm|sglang|engines?)|(weights?|params?|parameters?|policy)_sync(ing)?|push_policy|sync_(policy|rollout|vllm)'
        r'|switch_to_(rollout|trainer)|(sleep|wake_up)_(replicas|engines?)',
    ),
    (
        'evaluate',
        r'(run_|do_|maybe_|_)*(eval|evaluate|evaluation|validate|validation|testing)'
        r'(_(step|epoch|loop|model|policy|agent|set|run|once|checkpoint|rollout|rollouts))?',
    ),
    (
        'reference_policy',
        r'(.*_)?ref(erence)?(_policy|_model)?_(log_?probs?|logps?|forward|scores?)(_.*)?|ref|reference(_policy)?'
        r'|(.*_)?teacher_(log_?probs?|logps?|forward)(_.*)?',
    ),
    (
        'logprob',
        r'(.*_)?(log_?probs?|logps?)(_(and|from|inference|calculation|pass|of)_?.*)?|(compute_|calc_|calculate_|infer_)?values?'
        r'|value_inference',
    ),
    (
        'advantage',
        r'(.*_)?(compute|calc|calculate|estimate|normali[sz]e|get)_(\w+_)?(advantages?|returns|gae|adv)(_.*)?'
        r'|((group|relative|batch|token|grpo|mc|rloo|whiten|normali[sz]ed?|estimated?|loo)_)*advantages?|advantages?(_calculation|_estimation|_and_returns)?|adv|gae',
    ),
    (
        'reward',
        r'(compute|calc|calculate|get|run|async|batched|call|apply|assign|evaluate|score)_(\w+_)*'
        r'(rewards?|rm|rm_scores?|scores?)(_.*)?'
        r'|rewards?(_calculation|_model|_computation|_scoring)?|(score|grade|judge|verify)'
        r'(_(batch|rollouts?|responses?|completions?|answers?|samples?|trajector(y|ies)|episodes?))?'
        r'|scoring|group_reward_model|tool_reward',
    ),
    (
        'rollout',
        r'(.*_)?(collect|run|do|make|play|gather|get|generate|start|perform|sample|produce|create)_(\w+_)?'
        r'(rollouts?|trajector(y|ies)|experiences?|episodes?|samples)(_.*)?'
        r'|rollouts?(_step|_phase|_batch|_generation)?|explore|(make_)?experiences?(_batch)?|exploration|collect'
        r'|(.*_)?generate_and_\w+|play|data_collection',
    ),
    (
        'generation',
        r'(async_|batch_|_)*(generate|gen)(_(async|batch|sequences?|text|texts|completions?|responses?|tokens|single_turn|one|many'
        r'|turn|reply|outputs?|step|on_policy_for_slices|student_completions))*|generation|sampling|decode_batch'
        r'|sample_(tokens|responses?|completions?|batch|answers?|actions?)',
    ),
    ('data_processing', r'(next|get|load|fetch)_(train_|training_|prompt_|data_)?batch(es)?'),
    ('optimizer', r'(.*_)?(optim|optimi[sz]er)_step(_.*)?|(step|apply)_(optimi[sz]er|gradients?)'),
    (
        'forward_backward',
        r'(.*_)?(forward_backward|fwd_bwd)(_.*)?|backward(_pass)?|compute_loss|(micro_?batch|mini_?batch)_(step|update)',
    ),
    (
        'policy_update',
        r'(.*_)?(update|train|optimi[sz]e|improve|fit)_(the_)?(policy|actor|critic|agent|value|value_function|learner|minibatch'
        r'|mini_?batch|on_batch|batch|on_rollouts?|on_samples|ppo|grpo|actor_critic|critic_and_policy|policy_and_critic)(_.*)?'
        r'|(policy|actor|critic|value|ppo|grpo|reinforce|agent|gradient|grad|rm|learner|model)_(update|train(ing)?|optimi[sz]ation|train_step)s?'
        r'|(train|training|learn|update|learner)_(step|iteration|phase|epoch|batch|inner|actor|critic|once|model)|async_train|ppo_epochs?|learn'
        r'|training|train_(mini|micro)_?batch(es)?',
    ),
    (
        'setup',
        r'setup|(.*_)?(init|initiali[sz]e)_(workers|trainer|engines?|servers?|ray|distributed|process_group|cluster)|setup_(training|trainer|workers|distributed|engines?|environments?|cluster|run|everything)',
    ),
    ('model_init', r'(init|build|load|create|setup)_(the_)?(models?|policy|policies|actor_model|training_models)'),
    (
        'data_processing',
        r'(pre|post)?_?(process|prepare|collate|pack|tokeni[sz]e|balance|shuffle|convert|split|filter|dispatch)_(\w+_)*'
        r'(batch|data|samples?|inputs?|prompts?|rollouts?|experiences?)(_.*)?'
        r'|(.*_)?data_(processing|pre_?process(ing)?|load(ing)?|prep|preparation)|(pre|post)_?process(ing)?'
        r'|(next|get|load|fetch)_(train_|prompt_)?batch|dump_rollout_generations|dump_.*_(results|batch)|batching',
    ),
    (
        'log',
        r'(.*_)?log(_(metrics|dict|scalars?|stats|step|to_wandb|results?|training_metrics))?|report_metrics|track(_metrics)?',
    ),
)
_COMPILED = tuple((group, re.compile(pattern)) for group, pattern in _GROUPS)

# Words that make a name speak *about* a phase: they decide, describe or build something, and take no time worth a span.
_ABOUT = re.compile(
    r'(is|has|extract|log|start|stop|vocab|vocabulary|should|can|set|make|build|parse|register|print|format|check|on|from|to|add|num|max|min|with|without|as|test|assert'
    r'|wrap|new|default|need|needs|use|get_num|plot|mock|fake|import|require|requires|supports?|resolve|create|find|infer|maybe_log)_.*'
    r'|.*_(config|configs|args|arg|fn|fns|func|funcs|function|functions|name|names|kwargs|metrics|path|paths|cls|class|type|types'
    r'|dir|info|schedule|stats|mask|masks|key|keys|spec|id|ids|shape|shapes|size|sizes|dataset|dataloader|loader|url|manager'
    r'|workers|state_dict|table|template|mode|logger|callback|interval|freq|count|counts|index|iterator|plan|request|wrapper|range'
    r'|device|devices|handles?|weight|coef|client|server|prompt|message|messages|error|errors|hook|hooks|enabled|disabled|from_logits(_.*)?|to_cpu|profiling|profile|value|epoch|step_size)'
)
# ... unless the whole name is one of these.
_WORK = re.compile(
    r'(train|run|eval|evaluate|compute|update)_(one_)?epoch|(compute|update|train)_value|extract_samples|make_(experiences?|rollouts?)(_batch)?|set_weights|build_(models?|policy)|create_(models?|training_models)|to_vllm'
)


@functools.cache
def plain(name: str) -> str:
    """A name as words with underscores: `_generateAndScore` is `generate_and_score`."""
    name = re.sub(r'(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])', '_', name)
    return re.sub(r'\W+', '_', name).strip('_').lower()


@functools.cache
def of_label(label: str) -> str | None:
    """The group of a timer label, None if it means nothing here."""
    name = plain(label.rpartition('/')[2])
    name = re.sub(r'_(s|ms|sec|secs|seconds|time|duration)$', '', name)
    # `transformers.generate`, `vllm_generate`: whose engine it is does not change what is done.
    engine = re.sub(r'^(v_?llm|sg_?lang|trtllm|hf|transformers|engine|native)_', '', name)
    return next((group for word in (name, plain(label), engine) if (group := _first(word))), None)


@functools.cache
def of_function(name: str) -> str | None:
    """The group of a function by its name, None if it means nothing here."""
    name = plain(name)
    if _ABOUT.fullmatch(name) and not _WORK.fullmatch(name):
        return None
    return _first(name)


def _first(name: str) -> str | None:
    return next((group for group, pattern in _COMPILED if pattern.fullmatch(name)), None)


_TRAINED = re.compile(
    r'(.*_)?(policy|actor|critic|agent|learner|model|trainer|algo|algorithm|value_fn|value_net|student|worker|engine|wg)(_.*)?'
)
_OPTIMIZER = re.compile(r'(.*_)?(optim|optimi[sz]ers?|opt|optims?)(_.*)?')
_NO_ROLLOUT = re.compile(r'(.*_)?(random|rng|np|generator|torch|dist)(_.*)?')


def of_call(name: str, receiver: str, arguments: int, constant: bool) -> str | None:
    """The group of a call by what is called on what.

    Args:
        name: The last part of what is called.
        receiver: What stands before it.
        arguments: How many arguments it is given.
        constant: Whether all of them are constants: `model.train(False)` switches a mode.
    """
    last = plain(receiver.rpartition('.')[2])
    word = plain(name)
    if word == 'step' and _OPTIMIZER.fullmatch(last):
        return 'optimizer'
    if word == 'backward':
        return 'forward_backward'
    if word in ('train', 'update', 'fit', 'learn', 'optimize', 'improve', 'train_batch'):
        if word in ('train', 'update', 'fit') and (not arguments or constant or not _TRAINED.fullmatch(last)):
            return None
        return 'policy_update'
    if word in ('sample', 'collect') and (not last or _NO_ROLLOUT.fullmatch(last)):
        return None
    if word in ('log', 'track', 'save', 'score', 'play', 'values', 'value', 'step', 'wait', 'ref', 'adv', 'training'):
        # Too common to mean anything without a receiver that says more, or as the name of a function.
        return (
            'log'
            if word == 'log' and arguments and last not in ('math', 'np', 'torch', 'logging', 'jnp')
            else (
                'checkpoint'
                if word == 'save' and re.search(r'check_?point|ckpt|saver|trainer|model|rollout', last)
                else 'reward'
                if word == 'score' and re.search(r'reward|judge|verif|grader|scorer', last)
                else None
            )
        )
    return of_function(name)


_ASIDE = re.compile(
    r'(^|[./])(experimental|examples?|recipes?|benchmarks?|scripts|tools|legacy|deprecated|contrib)([./]|$)'
)


def aside(module: str) -> bool:
    """Whether a module is beside the point: an experiment, an example, a tool."""
    return _ASIDE.search(module) is not None


_OF_TRAINING = (
    r'((train|training|actor|policy|objective|losses|loss|rollout|algorithm|rl|grpo|ppo|perf|performance|metrics)/)?'
)
_METRICS: tuple[tuple[str, str, str], ...] = (
    (
        'rl.reward.mean',
        r'(train_|episode_|total_)?(mean_reward|reward(/mean|_mean)?|avg_(raw_)?reward|avg_score)|critic/(score|rewards)/mean',
        '',
    ),
    (
        'rl.kl_divergence',
        r'(mean_|approx_|avg_|ppo_|policy_|actor_)?kl(_div|_divergence|_penalty|_loss|_mean|/mean)?',
        '',
    ),
    ('rl.value_loss', r'(value|critic|vf)_loss|critic/(vf_)?loss', ''),
    ('rl.policy_loss', r'(policy_|pg_|actor_|total_)?loss', ''),
    ('rl.entropy', r'(approx_|mean_|policy_|avg_)?entropy(/mean|_mean|_loss)?|ent', ''),
    ('rl.grad_norm', r'(total_|actor_|policy_)?grad(ient)?_norm|gnorm', ''),
    ('rl.learning_rate', r'lr|learning_rate|actor_lr', ''),
    (
        'rl.response_length.mean',
        r'(mean_|avg_)?(response|completion|completions|generation|gen|output)_?(len|length|lengths)(_mean|/mean)?'
        r'|completions/mean_length|(mean_|avg_)?(response|completion|gen|output)_tokens(_mean|/mean)?|mean_gen_tokens_per_sample',
        '{token}',
    ),
    ('rl.accuracy', r'(mean_|avg_)?(accuracy|acc|success_rate|pass_rate|solve_rate)(_mean|/mean)?', ''),
    ('rl.clip_fraction', r'(pg_|ppo_)?clip_?(frac|fraction|ratio)', ''),
    ('rl.advantage.mean', r'(mean_|avg_)?advantage(_mean|/mean)?|critic/advantages/mean|advantages/mean', ''),
    ('rl.tokens_per_sec', r'(tokens_per_sec(ond)?|tok_per_s|tokens_per_s|throughput|tps|tgs)', '{token}/s'),
)
_METRICS_COMPILED = tuple((name, re.compile(f'{_OF_TRAINING}({pattern})'), unit) for name, pattern, unit in _METRICS)


def of_metric(key: str) -> tuple[str, str] | None:
    """The name and unit of the metric a logged key stands for, None if it has no known one."""
    word = key.lower()
    if word.startswith(('eval', 'val', 'test')):
        return None
    return next(((name, unit) for name, pattern, unit in _METRICS_COMPILED if pattern.fullmatch(word)), None)
