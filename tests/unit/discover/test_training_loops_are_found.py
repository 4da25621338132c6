# SPDX-License-Identifier: Apache-2.0
"""Which loop is the one whose iterations are steps, and how a rule names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.discovered import Discovered

PHASES = """
    def generate(prompts): return engine(prompts)
    def compute_rewards(rollouts): return judge(rollouts)
    def train_policy(batch): return learn(batch)
    def evaluate(policy): return generate(policy)
    def save_checkpoint(step): dump(step)
"""

# Name, source (after PHASES), the target of the loop and its pattern.
FOUND = [
    (
        'a range in a function',
        """
        def main(steps):
            for step in range(steps):
                rollouts = generate(step)
                train_policy(compute_rewards(rollouts))
        """,
        'train.py:main',
        'for $step in range($$$):',
    ),
    (
        'module level',
        """
        for i in range(10):
            train_policy(compute_rewards(generate(i)))
        """,
        'train.py',
        'for $i in range($$$):',
    ),
    (
        'a closure, and mini-batches inside',
        """
        def main():
            def run():
                while True:
                    rollouts = generate(1)
                    for epoch in range(4):
                        for batch in rollouts:
                            train_policy(batch)
            run()
        """,
        'train.py:main.run',
        'while True:',
    ),
    (
        'epochs around it that only save and evaluate',
        """
        def main(loader):
            for epoch in range(3):
                for batch in loader:
                    train_policy(compute_rewards(generate(batch)))
                evaluate(epoch)
                save_checkpoint(epoch)
        """,
        'train.py:main',
        'for $_ in loader:',
    ),
    (
        'a counted while',
        """
        def main(step, last):
            while step < last:
                train_policy(compute_rewards(generate(step)))
                step += 1
        """,
        'train.py:main',
        'while $step < $_:',
    ),
    (
        'supervised training with a loader in a progress bar',
        """
        def main(loader, optimizer):
            for epoch in range(3):
                for i, batch in enumerate(tqdm(loader, desc='epoch')):
                    loss = forward(batch)
                    loss.backward()
                    optimizer.step()
                    if i % 100 == 0:
                        save_checkpoint(i)
        """,
        'train.py:main',
        'for $i, $_ in enumerate($$$):',
    ),
    (
        'another loop of the same header: the name of the variable tells them apart',
        """
        def main(steps):
            for _ in range(3):
                warm_up()
            for step in range(steps):
                train_policy(compute_rewards(generate(step)))
        """,
        'train.py:main',
        'for step in range($$$):',
    ),
    (
        'calls on Ray',
        """
        def main(args, manager, actor_model):
            for rollout_id in range(args.start, args.num_rollout):
                data = ray.get(manager.generate.remote(rollout_id))
                ray.get(actor_model.async_train(rollout_id, data))
                actor_model.update_weights()
        """,
        'train.py:main',
        'for $rollout_id in range($$$):',
    ),
]

NONE = [
    (
        'an evaluation',
        """
        def main(loader):
            for batch in loader:
                compute_rewards(generate(batch))
        """,
    ),
    (
        'the mini-batches of one update',
        """
        def train_policy(batches, optimizer):
            for batch in batches:
                loss = forward(batch)
                loss.backward()
                optimizer.step()
        """,
    ),
    (
        'modes that are switched, and a dict that is updated',
        """
        def main(models, seen):
            for model in models:
                model.train()
                model.train(False)
                seen.update(model.names)
                random.sample(model.names, 3)
        """,
    ),
]


@pytest.mark.parametrize(('source', 'target', 'match'), [case[1:] for case in FOUND], ids=[case[0] for case in FOUND])
def test_the_loop_whose_iterations_are_steps_is_proposed(tmp_path: Path, source: str, target: str, match: str) -> None:
    main = '\nif __name__ == "__main__":\n    pass\n'
    assert Discovered(tmp_path, {'train.py': _joined(PHASES, source) + main}).loops() == {target: match}


@pytest.mark.parametrize('source', [case[1] for case in NONE], ids=[case[0] for case in NONE])
def test_loops_that_do_not_train_a_policy_are_left_alone(tmp_path: Path, source: str) -> None:
    assert Discovered(tmp_path, {'train.py': _joined(PHASES, source)}).loops() == {}


def test_a_loop_whose_steps_are_timed_is_left_to_the_timer(tmp_path: Path) -> None:
    found = Discovered(
        tmp_path,
        {
            'loop.py': """
            import time
            from contextlib import contextmanager

            @contextmanager
            def timed(name):
                start = time.perf_counter()
                yield
                print(name, time.perf_counter() - start)

            def main(steps):
                for step in range(steps):
                    with timed('step'):
                        with timed('generation'):
                            rollouts = engine.generate(step)
                        with timed('policy_training'):
                            policy.train(rollouts)
            """
        },
    )
    assert found.loops() == {}
    assert found.labels() == {'step': 'step', 'generation': 'generation', 'policy_training': 'policy_update'}
    assert found.left_out('timer label `step` is its step')


def test_the_number_of_the_step_is_read_where_the_program_counts_it(tmp_path: Path) -> None:
    found = Discovered(
        tmp_path,
        {
            'sft.py': """
            class Trainer:
                def fit(self, loader):
                    global_step = 0
                    for epoch in range(3):
                        for i, batch in enumerate(loader):
                            global_step += 1
                            self.train_batch(batch)
                            self.save_checkpoint(global_step)

                def train_batch(self, batch):
                    self.loss(batch).backward()

                def save_checkpoint(self, step):
                    store(step)
            """
        },
    )
    # `i` begins anew in each epoch, and when an iteration begins the count still is that of the step before.
    assert found.only('loop').fields['attributes'] == {'rl.iteration': 'frame.global_step + 1'}


def test_two_training_loops_of_one_program_are_both_proposed(tmp_path: Path) -> None:
    loop = """
    def train(steps):
        for step in range(steps):
            policy.train(engine.generate(step))
            engine.sync_weights(policy)

    if __name__ == '__main__':
        train(3)
    """
    found = Discovered(tmp_path, {'train.py': loop, 'train_async.py': loop})
    assert set(found.loops()) == {'train.py:train', 'train_async.py:train'}
    assert found.targets('job') == ['train', 'train']


def _joined(*parts: str) -> str:
    import textwrap

    return '\n'.join(textwrap.dedent(part) for part in parts)


def test_the_mini_batches_of_a_function_named_for_an_update_are_no_steps(tmp_path: Path) -> None:
    source = """
    def fit(steps, remote):
        for step in range(steps):
            rollouts = generate_rollouts(step)
            remote.call('ppo_update', rollouts)
            policy.train(rollouts)

    def ppo_update(rollouts):
        for batch in rollouts:
            policy.train(compute_advantages(batch))

    def generate_rollouts(step): return engine(step)
    def compute_advantages(batch): return normalise(batch)
    """
    assert list(Discovered(tmp_path, {'m.py': source}).loops()) == ['m:fit']


@pytest.mark.parametrize(
    ('body', 'iteration'),
    [
        (('log(step)', 'policy.train(generate(1))', 'step += 1'), 'frame.step'),
        (('policy.train(generate(1))', 'step += 1', 'save_checkpoint(step)'), 'frame.step + 1'),
        (('policy.train(generate(1))', 'save_checkpoint(1)', 'step += 1'), 'frame.step'),
        (('policy.train(generate(1))', 'save_checkpoint(1)', 'total_steps += 1'), None),
    ],
)
def test_a_step_has_the_number_that_the_program_calls_it_by(
    tmp_path: Path, body: tuple[str, ...], iteration: str | None
) -> None:
    lines = '\n'.join(f'        {line}' for line in body)
    found = Discovered(tmp_path, {'train.py': f'def main(step):\n    while True:\n{lines}\n'})
    [rule] = [rule for rule in found.rules('loop') if rule.fields['group'] == 'step']
    assert rule.fields.get('attributes') == ({'rl.iteration': iteration} if iteration else None)
