# SPDX-License-Identifier: Apache-2.0

import json
from pathlib import Path

RULES = """\
framework: tiny
when: tiny_trainer
groups: {step: {}}
presets: {default: [step], per_step: [step], all: '*'}
rules:
- kind: function
  target: tiny_trainer:train_step
  group: step
  name: rl.tiny.step
"""
TRAINER = """\
def train_step(number):
    return number + 1
"""


def traced(installed, folder: Path) -> Path:
    """Run one traced line of Python; returns its run folder."""
    folder.joinpath('tiny.yaml').write_text(RULES)
    folder.joinpath('tiny_trainer.py').write_text(TRAINER)
    program = 'import tiny_trainer; print(tiny_trainer.train_step(1))'

    command = ['--rules', 'tiny.yaml', '--run-dir', 'run', '--exporter', 'file', 'python', '-c', program]
    done = installed.run('lens-instrument', *command, cwd=folder)

    assert (done.returncode, done.stdout) == (0, '2\n'), done.stderr
    return folder / 'run'


def spans(run: Path) -> list[tuple[str, str]]:
    """Service and name of every span of a run folder."""
    return sorted(
        (attribute['value']['stringValue'], span['name'])
        for path in run.glob('traces*.jsonl')
        for line in path.read_text().splitlines()
        for resource in json.loads(line)['resourceSpans']
        for attribute in resource['resource']['attributes']
        if attribute['key'] == 'service.name'
        for scope in resource['scopeSpans']
        for span in scope['spans']
    )


def test_a_traced_line_of_python_gives_the_same_run_folder_from_both(installed, tmp_path: Path) -> None:
    run = traced(installed, tmp_path)

    kinds = {path.name.partition('-')[0].removesuffix('.jsonl') for path in run.iterdir() if path.is_file()}
    assert kinds >= {'traces', 'run.json', '.gitignore', '.rayignore'}
    assert spans(run) == [('tiny', 'lens.run'), ('tiny', 'rl.tiny.step')]


def test_programs_that_look_for_us_find_us(installed, tmp_path: Path) -> None:
    names = ('opentelemetry_instrumentor', 'vllm.general_plugins')
    program = (
        'from importlib.metadata import entry_points\n'
        f'for group in {names!r}:\n'
        '    [found] = entry_points(group=group)\n'
        '    print(found.name, callable(found.load()), found.load().__qualname__)'
    )
    done = installed.run('python', '-c', program, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, 'lens_auto True Instrumentor\nlens_auto True load\n'), done.stderr
