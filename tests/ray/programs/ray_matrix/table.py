# SPDX-License-Identifier: Apache-2.0
"""What each cell must show. Imports no ray: the test reads it too."""

from __future__ import annotations

from dataclasses import dataclass

PHASE = 'phase'  # as a parent: the driver's span of the cell
EITHER = 'either'  # as a parent: whatever it is; what is shown is that the span is there, once


@dataclass(frozen=True)
class Body:
    """A ruled function that runs in a worker.

    Attributes:
        target: Its rule's target, without the package.
        parent: The name of the span above, or PHASE or EITHER.
        times: How many spans the cell makes of it.
        actor: The actor's class, or '' for a task.
        actor_name: The actor's name, where it has one.
        attempts: The attempts among the spans, one number each; () stands for all 0.
        cut: How many of the spans have no end.
        error: Whether the last of them failed.
    """

    target: str
    parent: str = PHASE
    times: int = 1
    actor: str = ''
    actor_name: str | None = None
    attempts: tuple[int, ...] = ()
    cut: int = 0
    error: bool = False

    @property
    def name(self) -> str:
        """The span's name."""
        return self.target.rpartition(':')[2]


@dataclass(frozen=True)
class Cell:
    """A kind of call: `phase_<name>` makes it."""

    name: str
    bodies: tuple[Body, ...]


def _task(name: str, *functions: str | Body, **facts: object) -> Cell:
    bodies = (one if isinstance(one, Body) else Body(f'tasks:{one}', **facts) for one in functions)  # type: ignore[arg-type]
    return Cell(name, tuple(bodies))


def _actor(name: str, *methods: str | Body, **facts: object) -> Cell:
    def body(method: str) -> Body:
        owner = method.partition('.')[0]
        return Body(**{'target': f'actors:{method}', 'actor': owner, **facts})

    return Cell(name, tuple(one if isinstance(one, Body) else body(one) for one in methods))


def _helpers(above: str, actor: str, *names: str) -> tuple[Body, ...]:
    return tuple(Body(f'bodies:{name}', above, actor=actor) for name in names)


TASKS = (
    _task('task', 'decorated'),
    _task('late_task', 'late'),
    _task('generator_task', 'generator'),
    _task('nested_task', 'outer', Body('tasks:inner', 'outer')),
    _task('retried_task', 'retried', times=2, attempts=(0, 1)),
    _task('failing_task', 'failing', error=True),
    _task('failing_generator_task', 'failing_generator', error=True),
    # No ref, and nothing in the task's signature: there the caller is not known.
    _task('no_return_task', 'no_return', parent=EITHER),
    _task('two_returns_task', 'two_returns'),
    _task('threads_in_task', 'with_threads', *_helpers('with_threads', '', 'on_thread', 'in_pool')),
    _task('ref_elsewhere', 'producer', 'consumer'),
    _task('outliving_task', 'outliving'),
    _task('task_with_options', 'with_options'),
    _task('placement_group', 'placed', Body('actors:Placed.work', actor='Placed')),
)

ACTORS = (
    _actor('init', 'Kinds.__init__'),
    _actor('own', 'Kinds.own'),
    _actor('inherited', 'Ancestor.inherited', actor='Kinds'),
    _actor('static', 'Kinds.static'),
    _actor('of_class', 'Kinds.of_class'),
    _actor('generator', 'Kinds.generator'),
    _actor('generator_to_refs', 'Kinds.generator'),
    _actor('failing', 'Kinds.failing', error=True),
    _actor('failing_generator', 'Kinds.failing_generator', error=True),
    _actor('wrong_arguments', 'Kinds.exact', times=0),
    _actor('ray_call', *_helpers(PHASE, 'Kinds', 'by_ray_call')),
    _actor('no_return', 'Kinds.no_return'),
    _actor('two_returns', 'Kinds.two_returns'),
    _actor('threads_in_actor', 'Kinds.with_threads', *_helpers('Kinds.with_threads', 'Kinds', 'on_thread', 'in_pool')),
    _actor('by_reference', 'Kinds.by_reference', *_helpers('Kinds.by_reference', 'Kinds', 'Plain.work')),
    _actor('split', 'SplitImpl.__init__', 'SplitImpl.work', actor='Split'),
    _actor('late', 'Late.work'),
    _actor('async', 'Async.work', times=3),
    _actor('async_generator', 'Async.stream'),
    _actor('async_failing', 'Async.failing', error=True),
    _actor('async_failing_generator', 'Async.failing_stream', error=True),
    _actor('async_no_return', 'Async.no_return'),
    _actor(
        'loop_in_actor',
        'Async.with_loop',
        *_helpers('Async.with_loop', 'Async', 'in_executor', 'to_thread', 'in_created_task'),
    ),
    _actor('threaded', 'Threaded.work', times=2),
    _actor('groups', 'Groups.read', 'Groups.work'),
    _actor(
        'restarted',
        Body('actors:Restarted.__init__', times=2, actor='Restarted', attempts=(0, 1)),
        Body('actors:Restarted.dies_once', times=2, actor='Restarted', attempts=(0, 1), cut=1),
    ),
    _actor('nested', 'Caller.call', Body('actors:Called.called', 'Caller.call', actor='Called')),
    _actor(
        'made_in_actor',
        'Maker.make',
        Body('actors:Made.__init__', 'Maker.make', actor='Made'),
        Body('actors:Made.work', 'Maker.make', actor='Made'),
    ),
    _actor(
        'made_in_task',
        Body('actors:maker'),
        Body('actors:MadeByTask.__init__', 'maker', actor='MadeByTask'),
        Body('actors:MadeByTask.work', 'maker', actor='MadeByTask'),
    ),
    _actor('named', 'Named.work', actor_name='by name'),
    _actor('detached', 'Detached.work', actor_name='left'),
    _actor(
        'trainer',
        Body('actors:TrainerImpl.fit', actor='Trainer'),
        Body('actors:TrainerImpl.step', 'TrainerImpl.fit', times=2, actor='Trainer'),
        Body('actors:Rollouts.generate', 'TrainerImpl.step', times=2, actor='Rollouts'),
    ),
)

# In the script itself, which workers know as `__main__`.
SCRIPT = (
    Cell('script_task', (Body('script_task'),)),
    Cell(
        'script_actor',
        (Body('ScriptActor.__init__', actor='ScriptActor'), Body('ScriptActor.work', actor='ScriptActor')),
    ),
    Cell('script_late_actor', (Body('ScriptLate.work', actor='ScriptLate'),)),
)


def targets() -> dict[str, str]:
    """Span name -> target, of the rules for modules."""
    found = {body.name: f'ray_matrix.{body.target}' for cell in TASKS + ACTORS for body in cell.bodies}
    found |= {f'phase_{cell.name}': f'ray_matrix.task_phases:phase_{cell.name}' for cell in TASKS}
    found |= {f'phase_{cell.name}': f'ray_matrix.actor_phases:phase_{cell.name}' for cell in ACTORS}
    return found | {f'phase_{cell.name}': f'ray_matrix.script_phases:phase_{cell.name}' for cell in SCRIPT}


def script_targets(script: str) -> dict[str, str]:
    """Span name -> target, of the rules for the script."""
    return {body.name: f'{script}:{body.name}' for cell in SCRIPT for body in cell.bodies}
