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
    *('tokenize', 'traceback', 'typing', 'uuid', 'yaml', 'zipfile', 'zlib', 'opentelemetry'),
)
SHOW = """
import sys
sys.path[:0] = [{repository!r}]
sys.path.append({packages!r})
before = set(sys.modules)
import lens_auto.launch.main, lens_auto.launch.spawn
start = lens_auto.launch.spawn.start
def show(*arguments):
    loaded = sorted(set(sys.modules) - before)
    child = start(*arguments)
    open('loaded', 'w').write(' '.join(loaded))
    return child
lens_auto.launch.spawn.start = show
lens_auto.launch.main.main()
"""


def test_before_the_command_starts_only_our_own_small_modules_are_loaded(bench: Bench) -> None:
    bench.cwd.joinpath('lens.yaml').write_text('framework: mine\nrules: []\n')
    program = SHOW.format(repository=str(REPOSITORY), packages=sysconfig.get_path('purelib'))
    # Isolated and without `site`, which imports what a venv's .pth files ask for.
    command = [sys.executable, '-I', '-S', '-c', program, '--no-summary', '--span-groups', 'per_step', 'true']
    loaded: list[set[str]] = []
    for _ in range(2):
        subprocess.run(command, cwd=bench.cwd, env=bench.env, check=True, capture_output=True)
        loaded.append(set(bench.cwd.joinpath('loaded').read_text().split()))

    cold, warm = loaded
    assert 'yaml' in cold
    assert sorted(warm.intersection(HEAVY)) == []
    assert not [name for name in warm if name.startswith('opentelemetry')]
