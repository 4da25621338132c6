# SPDX-License-Identifier: Apache-2.0
"""The functions that get a span: those a training loop leads to, and of each phase the outermost."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.discovered import Discovered


def test_functions_that_a_loop_leads_to_are_proposed_with_their_groups(tmp_path: Path) -> None:
    source = """
    class Trainer:
        def fit(self, steps):
            self.load_checkpoint()
            for step in range(steps):
                batch = self.collect_rollouts(step)
                batch = self.compute_advantages(self.compute_rewards(batch))
                self.update_policy(batch)
                self.sync_weights()
                if step % 10 == 0:
                    self.evaluate()
                    self.save_checkpoint(step)

        def collect_rollouts(self, step): return self.engine.sample(self.prompts(step))
        def compute_rewards(self, batch): return [judge(one) for one in batch]
        def compute_advantages(self, batch): return normalise(batch)
        def update_policy(self, batch): self.optimizer.step(batch)
        def sync_weights(self): self.engine.load(self.policy)
        def evaluate(self): return judge(self.engine)
        def save_checkpoint(self, step): store(self.policy, step)
        def load_checkpoint(self): self.policy = fetch()
        def build_reward_config(self): return config()
        def log_probs_path(self): return join('log_probs')
    """
    found = Discovered(tmp_path, {'m.py': source})
    groups = {str(rule.fields['target']).rpartition('.')[2]: rule.fields['group'] for rule in found.rules('function')}
    assert groups == {
        'fit': 'job',
        'collect_rollouts': 'rollout',
        'compute_rewards': 'reward',
        'compute_advantages': 'advantage',
        'update_policy': 'policy_update',
        'sync_weights': 'refit',
        'evaluate': 'evaluate',
        'save_checkpoint': 'checkpoint',
        'load_checkpoint': 'load_checkpoint',
    }
    assert found.proposal.groups == {'refit': 'overhead'}
    assert '# likely: line 14, called in line 6, 1 call from a training loop' in found.text


def test_what_no_training_loop_leads_to_is_not_proposed(tmp_path: Path) -> None:
    source = """
    def compute_rewards(batch): return judge(batch)
    def plot(batch): return compute_rewards(batch)
    """
    assert Discovered(tmp_path, {'m.py': source}).proposal.rules == []


def test_of_functions_that_call_each_other_the_outermost_of_a_phase_stays(tmp_path: Path) -> None:
    source = """
    def main(steps):
        for step in range(steps):
            rollouts = collect_rollouts(step)
            policy.train(rollouts)
            compute_rewards(rollouts)

    def collect_rollouts(step): return [generate(prompt) for prompt in prompts(step)]
    def generate(prompt): return engine(prompt)
    def compute_rewards(rollouts): return [score_answer(one) for one in rollouts]
    def score_answer(one): return judge(one)
    """
    found = Discovered(tmp_path, {'m.py': source})
    assert found.targets('reward') == ['compute_rewards']
    assert found.targets('rollout') == ['collect_rollouts']
    assert found.targets('generation') == ['generate']  # another phase, and the productive part of the rollout
    assert found.left_out('score_answer (inside compute_rewards)')


def test_a_function_with_the_whole_step_in_it_is_no_update(tmp_path: Path) -> None:
    source = """
    def main(steps):
        for step in range(steps):
            train_step(step)
            save_checkpoint(step)

    def train_step(step):
        rollouts = collect_rollouts(step)
        rewards = compute_rewards(rollouts)
        update_policy(rewards)

    def collect_rollouts(step): return engine(step)
    def compute_rewards(rollouts): return judge(rollouts)
    def update_policy(rewards): optimizer.step()
    def save_checkpoint(step): store(step)
    """
    found = Discovered(tmp_path, {'m.py': source})
    assert found.targets('policy_update') == ['update_policy']
    assert found.left_out('does a whole step')


def test_methods_that_ray_calls_are_recorded_in_their_actors_without_a_bucket(tmp_path: Path) -> None:
    source = """
    import ray

    @ray.remote
    class RewardWorker:
        def compute_rewards(self, batch): return judge(batch)

    class Policy:
        def generate(self, prompts): return engine(prompts)

    Actor = ray.remote(num_gpus=1)(Policy)

    def main(steps, reward_worker, policy):
        for step in range(steps):
            batch = collect_rollouts(policy, step)
            ray.get(reward_worker.compute_rewards.remote(batch))
            policy.train(batch)

    def collect_rollouts(policy, step):
        return ray.get(policy.generate.remote(step))
    """
    found = Discovered(tmp_path, {'m.py': source})
    assert found.targets('reward') == ['RewardWorker.compute_rewards']
    assert found.targets('generation') == ['Policy.generate']
    assert [line.partition(',')[0] for line in found.proposal.actors] == ['m:RewardWorker', 'm:Policy']
    assert 'asked on Ray in line 16' in found.text


def test_what_a_timer_times_already_is_not_hooked_again(tmp_path: Path) -> None:
    source = """
    import time
    from contextlib import contextmanager

    @contextmanager
    def timed(name):
        start = time.time()
        yield

    def main(steps):
        for step in range(steps):
            with timed('reward'):
                compute_rewards(step)
            update_policy(step)

    def compute_rewards(step): return judge(step)
    def update_policy(step):
        with timed('policy_update'):
            optimizer.step()
    """
    found = Discovered(tmp_path, {'m.py': source})
    assert {str(rule.fields['group']) for rule in found.rules('function')} == {'job'}
    assert found.left_out('timed by label `reward`: compute_rewards')
    assert found.left_out('times itself by label `policy_update`: update_policy')


def test_the_update_that_a_loop_writes_out_is_an_inner_loop_or_calls(tmp_path: Path) -> None:
    source = """
    def main(steps, optimizer, model):
        for step in range(steps):
            rollouts = model.generate(step)
            for epoch in range(4):
                loss = forward(rollouts)
                loss.backward()
                optimizer.step()
            torch.save(model, 'model.pt')

    if __name__ == '__main__':
        main(3)
    """
    found = Discovered(tmp_path, {'train.py': source})
    inner = [rule.fields for rule in found.rules('loop') if rule.fields['group'] == 'policy_update']
    assert [(rule['target'], rule['match']) for rule in inner] == [('train.py:main', 'for epoch in range($$$):')]
    calls = {str(rule.fields['match']): rule.fields['group'] for rule in found.rules('call')}
    assert calls == {'model.generate($$$)': 'generation', 'torch.save($$$)': 'checkpoint'}


def test_a_trainer_built_on_transformers_has_the_seams_of_its_trainer(tmp_path: Path) -> None:
    files = {
        'p/__init__.py': '',
        'p/base.py': """
        from transformers import Trainer

        class Base(Trainer):
            def training_step(self, model, inputs): return super().training_step(model, inputs)
        """,
        'p/grpo.py': """
        from p.base import Base

        class GRPOTrainer(Base):
            def _prepare_inputs(self, batch): return self._generate_and_score_completions(batch)
            def _generate_and_score_completions(self, batch): return engine(batch)
        """,
    }
    found = Discovered(tmp_path, files)
    step = found.only('interval').fields
    assert step['start'] == 'transformers.trainer_callback:CallbackHandler.on_step_begin'
    assert step['stop'] == 'transformers.trainer_callback:CallbackHandler.on_step_end'
    assert found.targets('job') == ['Trainer.train']
    assert found.targets('policy_update') == ['Trainer.training_step']
    assert found.targets('rollout') == ['GRPOTrainer._generate_and_score_completions']
    assert found.proposal.when == 'p'


def test_experiments_and_examples_do_not_crowd_out_the_trainer(tmp_path: Path) -> None:
    trainer = """
    def fit(steps):
        for step in range(steps):
            policy.train(compute_rewards(step))
            save_checkpoint(step)

    def compute_rewards(step): return judge(step)
    def save_checkpoint(step): store(step)
    """
    files = {
        'p/__init__.py': '',
        'p/fit.py': trainer,
        'p/experimental/__init__.py': '',
        'p/experimental/fit.py': trainer,
    }
    found = Discovered(tmp_path, files)
    targets = [str(rule.fields['target']) for rule in found.rules('function') if rule.fields['group'] != 'job']
    assert targets == ['p.fit:compute_rewards', 'p.fit:save_checkpoint']
    assert found.left_out('in experiments, examples or tools')


def test_no_more_is_proposed_than_asked_for_and_the_rest_is_told(tmp_path: Path) -> None:
    steps = '\n'.join(f'    def compute_rewards_{index}(batch): return judge(batch)' for index in range(12))
    calls = '\n'.join(f'            compute_rewards_{index}(step)' for index in range(12))
    source = f"""
    def main(steps):
        for step in range(steps):
            policy.train(step)
{calls}

{steps}
    """
    found = Discovered(tmp_path, {'m.py': source}, limit=5)
    assert len(found.proposal.rules) == 5
    assert found.left_out('further from the loop than others like it: ')
    assert len(Discovered(tmp_path, {}).targets('reward')) == 6
