# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import subprocess
import sys
import sysconfig

from tests.unit.launch.launched import REPOSITORY, Bench

# Each of these costs the start of a command 0.5 to 40 ms.
HEAVY = (
    *('argparse', 'ast', 'collections', 'contextlib', 'copy', 'ctypes', 'dataclasses', 'datetime', 'difflib', 'enum'),
    *(
        'fnmatch',
        'functools',
        'hashlib',
        'importlib.metadata',
        'importlib.util',
        'inspect',
        'json',
        'logging',
        'pathlib',
    ),
    *(
        'pickle',
        'random',
        're',
        'resource',
        'shutil',
        'signal',
        'socket',
        'string',
        'subprocess',
        'tempfile',
        'threading',
    ),
    *('statistics', 'tokenize', 'traceback', 'typing', 'urllib.parse', 'uuid', 'yaml', 'zipfile', 'zlib'),
    *('array', 'opentelemetry'),
)
RULES = """\
framework: mine
rules:
- {kind: function, target: "mine:train", group: step, name: rl.mine.step}
"""
SHOW = """
import sys
sys.path[:0] = [{repository!r}]
sys.path.append({packages!r})
before = set(sys.modules)
import lens_auto.launch.main, lens_auto.launch.{module}
inner = lens_auto.launch.{module}.{function}
def show(*arguments):
    loaded = sorted(set(sys.modules) - before)
    open('loaded', 'w').write(' '.join(loaded))
    return inner(*arguments)
lens_auto.launch.{module}.{function} = show
lens_auto.launch.main.main()
"""


def loaded(bench: Bench, function: str, *arguments: str) -> set[str]:
    """What was imported when the launcher came to call a function of its own."""
    module, _, name = function.partition('.')
    program = SHOW.format(
        repository=str(REPOSITORY), packages=sysconfig.get_path('purelib'), module=module, function=name
    )
    # Isolated and without `site`, which imports what a venv's .pth files ask for.
    command = [sys.executable, '-I', '-S', '-c', program, *arguments]
    subprocess.run(command, cwd=bench.cwd, env=bench.env, check=True, capture_output=True)
    return set(bench.cwd.joinpath('loaded').read_text().split())


def test_before_the_command_starts_only_our_own_small_modules_are_loaded(bench: Bench) -> None:
    bench.cwd.joinpath('lens.yaml').write_text('framework: mine\nrules: []\n')
    cold, warm = (loaded(bench, 'spawn.start', '--no-summary', '--span-groups', 'per_step', 'true') for _ in range(2))
    assert 'yaml' in cold
    assert sorted(warm.intersection(HEAVY)) == []
    assert not [name for name in warm if name.startswith('opentelemetry')]


def test_a_short_command_waits_for_no_imports_at_its_end(bench: Bench) -> None:
    bench.cwd.joinpath('lens.yaml').write_text(RULES)
    for _ in range(2):
        warm = loaded(bench, 'ending.leave', sys.executable, '-c', 'pass')
    assert 'lens_auto.collect.summary' in warm
    assert sorted(warm.intersection(HEAVY)) == []
