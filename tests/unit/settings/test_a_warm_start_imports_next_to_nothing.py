# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys
import time
from pathlib import Path

import lens_auto.settings

REPOSITORY = Path(lens_auto.settings.__file__).parents[2]

PROGRAM = """
import sys, os
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
from lens_auto.settings import project
from lens_auto.settings.resolve import resolve
command = ['python', 'train.py', '--config', sys.argv[2], '++telemetry.exporter=console', '++telemetry.unknwon=1']
environ = {'NEMO_RL_OTEL_SPAN_GROUPS': 'all'}
resolved = resolve({'set': ['export_rank=2']}, environ, command, sys.argv[3], ['nemo_rl'], sys.argv[4])
project.environment(resolved)
print(resolved.value('service_name'), resolved.value('sampler_enabled'), len(resolved.announcements))
print(*sorted(name for name in set(sys.modules) - before if not name.startswith('lens_auto')))
"""


def test_resolving_with_a_warm_cache_imports_no_yaml_and_nothing_heavy(tmp_path: Path) -> None:
    config, ours, cache = tmp_path / 'grpo.yaml', tmp_path / 'ours.yaml', tmp_path / 'cache'
    config.write_text('telemetry: {service_name: "${oc.env:NOBODY,warm}", exportr: x}\n')
    ours.write_text('sampler_enabled: true\n')
    time.sleep(0.05)
    arguments = [PROGRAM, str(REPOSITORY), str(config), str(ours), str(cache)]

    # Isolated and without site-packages the warm start could not import PyYAML if it wanted to.
    runs = [
        subprocess.run([sys.executable, *options, '-c', *arguments], capture_output=True, text=True, check=True).stdout
        for options in ([], ['-I', '-S'])
    ]

    assert [run.splitlines()[0] for run in runs] == ['warm True 2'] * 2
    assert 'yaml' in runs[0].split()
    assert runs[1].splitlines()[1] == '__future__'
