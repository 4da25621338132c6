# SPDX-License-Identifier: Apache-2.0
"""Loggers, and the keys of what they are given."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.discovered import Discovered

LOOP = """
    def main(steps, logger):
        logger = Logger()
        for step in range(steps):
            policy.train(compute_rewards(step))
            {body}

    def compute_rewards(step): return judge(step)
"""


def metrics(found: Discovered) -> dict[str, dict[str, object]]:
    """The keys of each logger rule, by its target."""
    result: dict[str, dict[str, object]] = {}
    for rule in found.rules('logger'):
        keys = rule.fields['metrics']
        assert isinstance(keys, dict)
        named: dict[str, object] = {
            key: value['name'] if isinstance(value, dict) else value for key, value in keys.items()
        }
        result[str(rule.fields['target'])] = named
    return result


def test_keys_are_followed_through_variables_updates_and_returned_dicts(tmp_path: Path) -> None:
    source = """
    class Logger:
        def log_metrics(self, metrics, step): store(metrics, step)

    def main(steps, optimizer):
        logger = Logger()
        for step in range(steps):
            metrics = {'reward': compute_rewards(step)}
            metrics['loss'] = policy.train(step)
            metrics.update(statistics(step))
            metrics |= {'prompt': 'hello', 'run_name': f'{step}'}
            logger.log_metrics(metrics, step)

    def statistics(step):
        found = {}
        found['kl'] = mean(step)
        found['grad_norm'] = norm(step)
        return {**found, 'perf/a': 1, 'perf/b': 2, 'perf/c': 3, **{f'timing/{k}': v for k, v in step.items()}}

    def compute_rewards(step): return judge(step)
    """
    found = Discovered(tmp_path, {'m.py': source})
    assert metrics(found) == {
        'm:Logger.log_metrics': {
            'reward': 'rl.reward.mean',
            'loss': 'rl.policy_loss',
            'kl': 'rl.kl_divergence',
            'grad_norm': 'rl.grad_norm',
            'perf/*': f'rl.{found.proposal.framework}.{{key}}',
            'timing/*': f'rl.{found.proposal.framework}.{{key}}',
        }
    }
    assert 'metrics_arg' not in found.only('logger').fields


def test_a_logger_with_keyword_arguments_has_those_as_keys(tmp_path: Path) -> None:
    source = """
    class MetricsLogger:
        def add(self, **kw): self.pending.update(kw)
        def log(self, step, d=None): store({**self.pending, **(d or {})}, step)

    def main(steps):
        logger = MetricsLogger()
        for step in range(steps):
            policy.train(compute_rewards(step))
            stats = {'kl': [], 'entropy': []}
            s = {k: sum(v) / len(v) for k, v in stats.items()}
            logger.add(reward=mean(step), solved=mean(step), **s)
            logger.log(step, {'time/step': now()})

    def compute_rewards(step): return judge(step)
    """
    found = Discovered(tmp_path, {'m.py': source})
    name = found.proposal.framework
    assert metrics(found) == {
        'm:MetricsLogger.add': {
            'reward': 'rl.reward.mean',
            'kl': 'rl.kl_divergence',
            'entropy': 'rl.entropy',
            'solved': f'rl.{name}.solved',
        },
        'm:MetricsLogger.log': {'time/step': f'rl.{name}.time.step'},
    }
    assert {str(rule.fields['metrics_arg']) for rule in found.rules('logger')} == {'kw', 'd'}


def test_of_a_logger_and_the_backends_it_hands_on_to_one_is_hooked(tmp_path: Path) -> None:
    source = """
    class Console:
        def log(self, data, step): show(data, step)

    class Tracking:
        def __init__(self): self.console = Console()
        def log(self, data, step): self.console.log(data=data, step=step)

    def main(steps):
        tracking = Tracking()
        for step in range(steps):
            policy.train(compute_rewards(step))
            tracking.log(data={'reward': mean(step), 'loss': mean(step)}, step=step)

    def compute_rewards(step): return judge(step)
    """
    assert list(metrics(Discovered(tmp_path, {'m.py': source}))) == ['m:Tracking.log']


def test_words_and_logs_are_no_metrics(tmp_path: Path) -> None:
    source = """
    import logging

    log = logging.getLogger(__name__)

    def main(steps):
        for step in range(steps):
            policy.train(compute_rewards(step))
            log.info('step %d', step)
            print({'reward': step})

    def compute_rewards(step): return judge(step)
    """
    assert Discovered(tmp_path, {'m.py': source}).rules('logger') == []


def test_a_program_without_a_logger_of_its_own_is_read_where_its_library_takes_metrics(tmp_path: Path) -> None:
    files = {
        'p/__init__.py': '',
        'p/algo.py': """
        import wandb

        class Algo:
            def learn(self):
                while self.iter < self.last:
                    loss = self.policy.train(self.compute_rewards())
                    self.iter += 1
                    wandb.log({'loss': loss, 'time/iter': now()}, step=self.iter)

            def compute_rewards(self): return judge(self)
        """,
    }
    found = Discovered(tmp_path, files)
    assert metrics(found) == {'wandb.sdk.wandb_run:Run.log': {'loss': 'rl.policy_loss', 'time/iter': 'rl.p.time.iter'}}
    assert found.proposal.when == 'p'
    assert found.only('loop').fields['attributes'] == {'rl.iteration': 'frame.self.iter + 1'}
