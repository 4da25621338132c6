# SPDX-License-Identifier: Apache-2.0
"""Everything a run needs before its command starts: settings, plan, identity, folder, spool, environment.

Only here may the launcher refuse to start. What fails for a reason that is not the user's ends in a run without us.
"""

from __future__ import annotations

import os

from lens_auto.collect.run import RunError
from lens_auto.launch import bootstrap, foresight, plan
from lens_auto.launch.environment import console_identity, forget, shown, with_entry, working_directory
from lens_auto.launch.output import say
from lens_auto.launch.refusal import Refusal
from lens_auto.settings.project import environment as projection
from lens_auto.settings.resolve import resolve
from lens_auto.settings.source import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from lens_auto.collect.folder import RunFolder
    from lens_auto.collect.receiver import Receiver
    from lens_auto.collect.run import Run
    from lens_auto.collect.spool import Spool
    from lens_auto.launch.arguments import Options
    from lens_auto.rules.plan_cache import Compiled
    from lens_auto.settings.resolve import Resolved


# The kernel takes 128 KiB for one variable.
_MOST_NAMES = 96 << 10


class Decided:
    """What was asked of this run.

    Attributes:
        compiled: The plan.
        resolved: The settings.
        cache: The user's cache folder, or None.
    """

    __slots__ = ('cache', 'compiled', 'resolved')

    def __init__(self, compiled: Compiled, resolved: Resolved, cache: str | None) -> None:
        self.cache = cache
        self.compiled = compiled
        self.resolved = resolved

    @property
    def announcements(self) -> list[str]:
        """What the user has to be told once, one line each."""
        return [*self.compiled.ignored, *self.resolved.announcements]


class Prepared:
    """A run whose command can be started.

    Attributes:
        decided: What was asked.
        run: Its identity.
        folder: Its folder.
        spool: Where its processes write.
        environ: The environment of its command.
        given: The launcher's own.
        command: The command and its arguments.
        strict: Whether doubts are errors.
        alone: Whether nobody stays beside the command to print and to wait (`--exec`).
        receiver: Where frameworks send spans of their own to, or None.
    """

    __slots__ = ('alone', 'command', 'decided', 'environ', 'folder', 'given', 'receiver', 'run', 'spool', 'strict')

    def __init__(
        self,
        options: Options,
        decided: Decided,
        run: Run,
        folder: RunFolder,
        spool: Spool,
        given: dict[str, str],
        environ: dict[str, str],
        receiver: Receiver | None,
    ) -> None:
        self.receiver = receiver
        self.alone = options.replace
        self.strict = options.strict
        self.command = options.command
        self.given = given
        self.decided = decided
        self.run = run
        self.folder = folder
        self.spool = spool
        self.environ = environ

    def first_line(self) -> str:
        """What the launcher says of the run at its start: where it goes, and what was set by whom."""
        resolved = self.decided.resolved
        path = shown(self.folder.path)
        exporter = resolved.value('exporter')
        where = f'recording to {path}' if exporter == 'file' else f'recording to {exporter}, folder {path}'
        lines = [f'run {self.run.run_id}: {where} (settings: run.json there, or --info)']
        if resolved.changed:
            from lens_auto.settings.describe import changed

            lines.append('settings: ' + changed(resolved))
        return '\n    '.join([*lines, *self.notes])

    @property
    def notes(self) -> list[str]:
        """What a user should know of where things lie."""
        gone = '' if working_directory() else 'the working directory has been removed'
        return [note for note in (gone, self.folder.note, self.spool.note) if note]

    def take_over(self, pid: int, started: int) -> None:
        """Be the process that collects this run, instead of the launcher that made it ready.

        Args:
            pid: That launcher's process id.
            started: Its start time.
        """
        from lens_auto.collect.folder import LAUNCHERS
        from lens_auto.record import process

        self.folder.register(self.spool.path)
        try:
            os.unlink(os.path.join(self.folder.path, LAUNCHERS, f'{process.hostname()}-{pid}-{started}'))
        except OSError:
            pass

    def discard(self) -> None:
        """Leave no trace of a run whose command was never started."""
        from shutil import rmtree

        rmtree(self.spool.path, ignore_errors=True)
        if self.folder.created:
            rmtree(self.folder.path, ignore_errors=True)
        else:
            self.folder.unregister()


def decide(options: Options, environ: Mapping[str, str]) -> Decided:
    """Compile the rules and resolve the settings.

    Args:
        options: The launcher's arguments.
        environ: The launcher's environment.

    Raises:
        Refusal: A rule file, a setting or a span group is wrong.
    """
    try:
        cache: str | None = bootstrap.cache_folder(environ)
    except bootstrap.NoBootstrap:
        cache = None  # slower, no worse
    compiled = plan.obtain(options, environ, cache)
    frameworks = plan.frameworks(compiled, options.command)
    try:
        resolved = resolve(options.settings, environ, options.command, options.telemetry, frameworks, cache)
    except SettingError as error:
        raise _redacted(error) from None
    plan.check_groups(compiled, resolved)
    plan.check_vocabulary(compiled, resolved)
    return Decided(compiled, resolved, cache)


def _redacted(error: Exception) -> Refusal:
    from lens_auto.settings import redact

    return Refusal(redact.text(str(error)))


def prepare(options: Options, environ: dict[str, str]) -> Prepared | None:
    """Make a run ready.

    Args:
        options: The launcher's arguments.
        environ: The launcher's environment.

    Returns:
        The run, or None when the settings say that nothing is to be recorded.

    Raises:
        Refusal: The user has to change something first.
    """
    if options.strict and options.replace:
        raise Refusal('--strict with --exec: nobody is left at the end to judge the run\n    leave one of them out')
    environ = forget(environ)
    decided = decide(options, environ)
    if decided.announcements:
        from lens_auto.settings import redact

        # They quote variables and arguments.
        lines = [redact.text(line) for line in decided.announcements]
        if options.strict:
            raise Refusal('--strict: ' + '\n    '.join(lines))
        for line in lines:
            say(line)
    if not decided.resolved.value('enabled'):
        if decided.resolved.off:
            say(f'nothing is recorded ({decided.resolved.source("enabled").where})')
        return None
    if sum(map(len, decided.compiled.modules)) + len(decided.compiled.modules) > _MOST_NAMES:
        reason = f'the names of the {len(decided.compiled.modules)} modules in the rules are too long for a variable'
        if options.strict:
            raise Refusal(f'--strict: {reason}')
        say(f'the command runs without being recorded: {reason}')
        return None
    for line in foresight.warnings(decided.resolved, decided.compiled.modules, options.command):
        say(line)
    from lens_auto.collect.folder import open_run
    from lens_auto.collect.spool import choose

    entry = bootstrap.folder(environ)
    try:
        run, folder = open_run(environ, working_directory() or _elsewhere(environ), options.run_dir)
    except RunError as error:
        if options.run_dir is None:
            raise
        raise Refusal(str(error)) from None
    try:
        spool = choose(environ, run, folder)
    except RunError as error:
        if not environ.get('LENS_SPOOL'):
            raise
        raise Refusal(str(error)) from None
    plan.keep(decided.compiled, spool.path)
    child = _environment(options, environ, decided, entry, run, spool)
    receiver = _receiver(decided, child)
    return Prepared(options, decided, run, folder, spool, environ, child, receiver)


def _receiver(decided: Decided, child: dict[str, str]) -> Receiver | None:
    """Where a framework's own spans go in a run that sends none to a backend; without one, the rest goes on."""
    resolved = decided.resolved
    if resolved.value('exporter') == 'otlp' or not resolved.value('vllm_native_tracing'):
        return None
    from lens_auto.collect.receiver import VARIABLE, Receiver

    try:
        receiver = Receiver()
    except OSError as error:
        say(f"vLLM's own spans are left out: nothing can listen on 127.0.0.1 ({error.strerror})")
        return None
    child[VARIABLE] = receiver.endpoint
    return receiver


def _elsewhere(environ: Mapping[str, str]) -> str:
    """Where the run folder goes when there is no working directory."""
    from lens_auto.collect.folder import per_job

    temporary = environ.get('TMPDIR') or '/tmp'
    return bootstrap.cache_folder(environ) if per_job(environ, temporary) else temporary


def _environment(
    options: Options, environ: dict[str, str], decided: Decided, entry: str, run: Run, spool: Spool
) -> dict[str, str]:
    child = dict(environ)
    child['PYTHONPATH'] = with_entry(environ.get('PYTHONPATH'), entry)
    child.update(projection(decided.resolved))
    child['LENS_ENABLED'] = '1'
    child['LENS_HOME'] = bootstrap.home()
    logs = ('logging',) if decided.resolved.value('logs_enabled') else ()
    child['LENS_MODULES'] = ','.join((*decided.compiled.modules, *logs))
    if decided.compiled.scripts:
        child['LENS_SCRIPTS'] = ':'.join(decided.compiled.scripts)
    if decided.cache:
        child['LENS_CACHE'] = decided.cache
    child['LENS_PLAN_REF'] = f'{decided.compiled.path}#{decided.compiled.sha256}'
    child['LENS_SPOOL'] = spool.path
    child['LENS_RUN_ID'] = run.run_id
    child['LENS_RUN_ROOT'] = run.root
    # Whose direct child the driver is; with --exec the command takes this process's place.
    child['LENS_LAUNCHER_PID'] = str(os.getppid() if options.replace else os.getpid())
    if decided.resolved.value('exporter') == 'console':
        # With --exec nobody is left to print for others: no process's stdout is this one.
        identity = '0:0' if options.replace else console_identity()
        if identity:
            child['LENS_CONSOLE'] = identity
    return child
