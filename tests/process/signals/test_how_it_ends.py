# SPDX-License-Identifier: Apache-2.0
"""Whoever waits for the launcher learns what it would learn from the program."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys

import pytest

from tests.process.signals.programs import LAUNCHER, PLAIN, Bench, outcome

DEADLY = [
    *(signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV, signal.SIGABRT, signal.SIGPIPE, signal.SIGXFSZ),
    *(signal.SIGHUP, signal.SIGUSR1, signal.SIGALRM, signal.SIGRTMAX),
]


@pytest.mark.parametrize('code', [0, 1, 2, 77, 255])
def test_an_exit_code_is_the_launchers(bench: Bench, code: int) -> None:
    assert outcome(bench.start([*LAUNCHER, 'sh', '-c', f'exit {code}'])) == (code, '')


@pytest.mark.parametrize('number', DEADLY)
def test_a_program_killed_by_a_signal_takes_the_launcher_with_it(bench: Bench, number: int) -> None:
    program = f'import os, signal; {number:d} == 9 or signal.signal({number:d}, 0); os.kill(os.getpid(), {number:d})'
    runs = [outcome(bench.start([*prefix, sys.executable, '-c', program])) for prefix in (PLAIN, LAUNCHER)]
    assert runs == [(-number, '')] * 2


def test_a_crash_leaves_the_programs_core_dump_alone(bench: Bench) -> None:
    with open('/proc/sys/kernel/core_pattern') as pattern:
        if pattern.read(1) in '|/':
            pytest.skip('core dumps do not go to the working directory here')

    def allow() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    command = [*LAUNCHER, 'sh', '-c', 'ulimit -c 0; kill -SEGV $$']
    done = subprocess.run(command, env=bench.env, cwd=bench.folder, preexec_fn=allow, capture_output=True)
    assert done.returncode == -signal.SIGSEGV
    assert [name for name in os.listdir(bench.folder) if name.startswith('core')] == []


def test_the_program_starts_with_the_signals_and_files_of_a_plain_run(bench: Bench) -> None:
    shown = 'grep -E "Sig(Blk|Ign|Cgt)|ShdPnd" /proc/self/status; ls /proc/self/fd | wc -l; umask; ulimit -a'
    program = ['sh', '-c', shown]
    for trap in ('true', "trap '' PIPE INT USR1"):
        runs = [
            outcome(bench.start(['sh', '-c', f'{trap}; "$@"; exit $?', 'sh', *prefix, *program]))
            for prefix in (PLAIN, LAUNCHER)
        ]
        assert runs[1] == runs[0]
        assert runs[0][0] == 0


def test_blocked_and_ignored_signals_are_handed_on_and_the_exit_code_is_not_lost(bench: Bench) -> None:
    def unusual() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGRTMIN + 1, signal.SIGTERM})

    program = 'grep -E "Sig(Blk|Ign)" /proc/self/status; exit 5'
    runs: list[tuple[int, str]] = []
    for prefix in (PLAIN, LAUNCHER):
        command = [*prefix, sys.executable, '-c', f'import os; os.execvp("sh", ["sh", "-c", {program!r}])']
        done = subprocess.run(
            command, env=bench.env, cwd=bench.folder, preexec_fn=unusual, stdout=subprocess.PIPE, text=True
        )
        runs.append((done.returncode, done.stdout))
    assert runs[1] == runs[0]
    assert runs[0][0] == 5


@pytest.mark.parametrize('streams', ['0', '1', '2', '012'])
def test_closed_standard_streams_stay_closed(bench: Bench, streams: str) -> None:
    closing = ' '.join(f'{fd}>&-' for fd in streams)
    target = bench.folder / 'fds'
    runs: list[str] = []
    for prefix in (PLAIN, LAUNCHER):
        command = f'"$@" {closing}'
        program = [
            'sh',
            '-c',
            f'for fd in 0 1 2 3 4 5 6; do test -e /proc/$$/fd/$fd && echo $fd; done > {target}; true',
        ]
        subprocess.run(['sh', '-c', command, 'sh', *prefix, *program], env=bench.env, cwd=bench.folder, check=True)
        runs.append(target.read_text())
    assert runs[1] == runs[0]
