# SPDX-License-Identifier: Apache-2.0
"""What the compiled plan says, from the rule file's text."""

from pathlib import Path
from textwrap import dedent
from typing import Any

from lens_auto.rules.compile import compile_files
from lens_auto.rules.merging import modules, scripts
from lens_auto.rules.plan import OTEL_MODULES, RAY_MODULES
from lens_auto.rules.validate import read_file


def compiled(tmp_path: Path, *texts: str) -> dict[str, Any]:
    files: list[Path] = []
    for number, text in enumerate(texts):
        files.append(tmp_path / f'{number}.yaml')
        files[-1].write_text(dedent(text))
    return compile_files([read_file(str(file)) for file in files], '1.0')


def one(tmp_path: Path, text: str) -> dict[str, Any]:
    (rule,) = compiled(tmp_path, 'framework: t\nrules:\n' + dedent(text))['rules']
    del rule['key'], rule['file'], rule['line']
    return rule


def test_a_function_rule_with_its_defaults(tmp_path: Path) -> None:
    rule = one(tmp_path, '- {kind: function, target: [a.b:f, a:C.f], group: policy_update, name: "rl.{self.kind}.f"}')
    assert rule == {
        'kind': 'function',
        'group': 'policy_update',
        'bucket': 'productive',
        'name': ('fmt', (('c', 'rl.'), ('.', ('self',), 'kind'), ('c', '.f'))),
        'attributes': {},
        'announce': True,
        'root': False,
        'native': False,
        'own_bucket': False,
        'budget': None,
        'only_from': None,
        'targets': (('a.b', 'f'), ('a', 'C.f')),
        'inside_bucket': None,
        'within': (),
        'outside': (),
        'apply': 'wrap',
        'force': False,
    }


def test_labels_inherit_from_their_timer_and_exact_ones_come_first(tmp_path: Path) -> None:
    rule = one(
        tmp_path,
        """
        - kind: timer
          with: t:Timer.time
          pair: t:Timer.start/stop
          only_from: [a.*, b]
          name: "rl.{label}"
          announce: false
          attributes: {n: 1}
          labels:
            "eval/*": evaluate
            gen: {group: generation, bucket: none, attributes: {x: label}, current: true}
            total: {group: step, name: rl.step, root: true, announce: true}
            "x/*": drop
        """,
    )
    assert rule['with'] == (('t', 'Timer.time'),)
    assert rule['pair'] == (('t', 'Timer.start', 'Timer.stop'),)
    assert rule['only_from'] == ('a.*', 'b')
    assert (rule['group'], rule['name'], rule['attributes']) == (None, None, {})
    assert list(rule['labels']) == ['gen', 'total', 'eval/*', 'x/*']
    named = ('fmt', (('c', 'rl.'), ('label',)))
    shared = {'drop': False, 'current': False, 'root': False, 'announce': False, 'bucket': None}
    shared |= {'native': False, 'own_bucket': False, 'continues_over': None}
    assert rule['labels'] == {
        'gen': {
            **shared,
            'group': 'generation',
            'name': named,
            'attributes': {'n': ('c', 1), 'x': ('label',)},
            'current': True,
            'own_bucket': True,
        },
        'total': {
            **shared,
            'group': 'step',
            'name': ('c', 'rl.step'),
            'attributes': {'n': ('c', 1)},
            'root': True,
            'announce': True,
        },
        'eval/*': {**shared, 'group': 'evaluate', 'name': named, 'attributes': {'n': ('c', 1)}},
        'x/*': {**shared, 'group': None, 'name': None, 'attributes': {}, 'announce': True, 'drop': True},
    }


def test_a_timer_without_labels_takes_all_of_them(tmp_path: Path) -> None:
    rule = one(tmp_path, '- {kind: timer, with: t:time, group: step, name: "rl.{label}"}')
    assert list(rule['labels']) == ['*']
    assert rule['labels']['*']['group'] == 'step'


def test_a_rule_on_places_in_the_source(tmp_path: Path) -> None:
    rule = one(
        tmp_path,
        """
        - kind: loop
          target: [./examples/train.py, "trainer:Trainer.fit.<locals>.inner", "trainer:Trainer.*"]
          match: "for $i in range($$$):"
          expect: 1+
          group: step
          name: "rl.{match.i}"
          attributes: {rl.iteration: match.i + 1, rl.n: frame.n}
        """,
    )
    assert rule['targets'] == (
        ('examples/train.py', ''),
        ('trainer', 'Trainer.fit.inner'),
        ('trainer', 'Trainer.*'),
    )
    assert (rule['match'], rule['expect'], rule['force']) == ('for $i in range($$$):', (1, None), False)
    assert rule['name'] == ('fmt', (('c', 'rl.'), ('match', 'i')))
    assert rule['attributes'] == {'rl.iteration': ('+', ('match', 'i'), ('c', 1)), 'rl.n': ('frame', 'n')}
    # All that a function rule has: a span is the same whichever way it was found.
    assert function_keys(tmp_path) <= rule.keys() | {'apply'}


def function_keys(tmp_path: Path) -> set[str]:
    return set(one(tmp_path, '- {kind: function, target: m:f, group: step, name: x}'))


def test_how_many_places_there_have_to_be(tmp_path: Path) -> None:
    text = '- {kind: call, target: m:f, match: g(), group: step, name: x, expect: %s}'
    for given, meant in (('2', (2, 2)), ('"0-1"', (0, 1)), ('3-5', (3, 5)), ('"0+"', (0, None)), ('1+', (1, None))):
        assert one(tmp_path, text % given)['expect'] == meant
    assert one(tmp_path, text.replace(', expect: %s', ''))['expect'] == (1, 1)


def test_scripts_are_named_apart_from_modules(tmp_path: Path) -> None:
    plan = compiled(
        tmp_path,
        """
        framework: t
        rules:
        - {kind: function, target: "train.py:main", group: step, name: a}
        - {kind: loop, target: [train.py, sub/train.py, loop], match: "while $$$:", group: step, name: a}
        """,
    )
    assert scripts(plan) == ('sub/train.py', 'train.py')
    assert 'loop' in modules(plan) and not any(name.endswith('.py') for name in modules(plan))


def test_an_interval_rule(tmp_path: Path) -> None:
    rule = one(
        tmp_path,
        '- {kind: interval, start: m:T.start, lap: [m:T.step, m:T.lap], group: step, name: "{label}", label_arg: what}',
    )
    assert (rule['start'], rule['stop'], rule['lap']) == ((('m', 'T.start'),), (), (('m', 'T.step'), ('m', 'T.lap')))
    assert (rule['label_arg'], rule['current']) == ('what', False)


def test_metrics_may_be_given_short_and_inherit_attributes(tmp_path: Path) -> None:
    rule = one(
        tmp_path,
        """
        - kind: logger
          target: m:Logger.log
          prefixes: ["", train]
          attributes: {rl.step: arg.step}
          metrics:
            reward: rl.reward
            "timing/*": {name: "rl.{key}", instrument: histogram, unit: s, attributes: {k: key}}
        """,
    )
    assert rule['prefixes'] == ('', 'train')
    assert rule['group'] is None
    assert rule['attributes'] == {}
    assert rule['metrics'] == {
        'reward': {
            'name': ('c', 'rl.reward'),
            'instrument': 'gauge',
            'unit': '',
            'attributes': {'rl.step': ('arg', 'step')},
            'nonzero': False,
        },
        'timing/*': {
            'name': ('fmt', (('c', 'rl.'), ('key',))),
            'instrument': 'histogram',
            'unit': 's',
            'attributes': {'rl.step': ('arg', 'step'), 'k': ('key',)},
            'nonzero': False,
        },
    }


def test_a_resource_rule(tmp_path: Path) -> None:
    rule = one(
        tmp_path,
        """
        - kind: resource
          target: m:C.__init__
          attributes: {rl.model: self.name}
          settings: self.cfg['telemetry']
        """,
    )
    assert rule['attributes'] == {'rl.model': ('.', ('self',), 'name')}
    assert rule['settings'] == ('[]', ('.', ('self',), 'cfg'), ('c', 'telemetry'))


def test_groups_presets_vars_and_when_of_a_file(tmp_path: Path) -> None:
    (file,) = compiled(
        tmp_path,
        """
        framework: t
        when: my_trainer >= 0.3, <1
        groups: {mine: {bucket: idle}, reward: {}, logprob: {bucket: productive}}
        presets: {per_step: [per_step, mine], quick: [default, step], all: "*"}
        vars:
          algorithm: {value: caller.module, map: {a.b: grpo, 1: 2}, default: rl}
          twice: algorithm + algorithm
        rules: []
        """,
    )['files']
    assert file['path'] == str(tmp_path / '0.yaml')
    assert file['when'] == {'module': 'my_trainer', 'version': '>=0.3,<1'}
    assert [file['groups'][name]['bucket'] for name in ('mine', 'reward', 'logprob', 'generation')] == [
        'idle',
        None,
        'productive',
        'productive',
    ]
    assert 'job' not in file['presets']['per_step']
    assert file['presets']['per_step'][-1] == 'mine'
    assert file['presets']['quick'] == ('job', 'checkpoint', 'evaluate', 'setup', 'model_init', 'step')
    assert file['presets']['all'] == '*'
    assert file['vars'] == {
        'algorithm': {'value': ('caller', 'module'), 'map': {'a.b': 'grpo', '1': 2}, 'default': 'rl'},
        'twice': {'value': ('+', ('var', 'algorithm'), ('var', 'algorithm')), 'map': None, 'default': None},
    }
    (file,) = compiled(tmp_path, 'framework: t\nwhen: {module: a.b, version: "==2"}\nrules: []\n')['files']
    assert file['when'] == {'module': 'a.b', 'version': '==2'}


RULE = '{kind: function, target: m:f, group: step, name: rl.f}'


def test_the_key_of_a_rule_is_what_it_says_not_where(tmp_path: Path) -> None:
    text = f'framework: t\nrules:\n- {RULE}\n'
    moved = 'framework: t\n# a comment\nrules:\n- name: rl.f\n  group: "step"\n  target: m:f\n  kind: function\n'
    changed = text.replace('rl.f', 'rl.g')
    keys = [compiled(tmp_path, file)['rules'][0]['key'] for file in (text, moved, changed, text.replace(': t', ': u'))]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    assert all(len(key) == 12 and int(key, 16) >= 0 for key in keys)


def test_a_copied_file_does_not_double_the_rules_it_left_alone(tmp_path: Path) -> None:
    other = RULE.replace('rl.f', 'rl.g')
    plan = compiled(
        tmp_path,
        f'framework: t\nrules:\n- {other}\n- {RULE}\n',
        f'framework: t\nrules:\n- {RULE}\n',
        f'framework: u\nrules: [{RULE}]\n',
    )
    assert [(rule['file'], rule['line']) for rule in plan['rules']] == [(0, 3), (0, 4), (2, 2)]


def test_modules_are_those_of_all_targets_and_torch(tmp_path: Path) -> None:
    plan = compiled(
        tmp_path,
        """
        framework: t
        rules:
        - {kind: function, target: [z.new:f, z:f], group: step, name: a}
        - {kind: timer, with: t:time, pair: p:T.start/stop, labels: {a: drop}}
        - {kind: interval, lap: i:T.lap, group: step, name: a}
        """,
    )
    assert modules(plan) == tuple(sorted(('i', 'p', 't', 'torch', 'z', 'z.new', *OTEL_MODULES, *RAY_MODULES)))


def test_merge_keys_and_yaml_words_are_read_as_written(tmp_path: Path) -> None:
    plan = compiled(
        tmp_path,
        """
        framework: t
        rules:
        - &one {kind: function, target: m:f, group: step, name: a, root: yes}
        - {<<: *one, name: b}
        - {kind: timer, with: m:t, labels: {on: drop, 1: drop, null: drop}}
        """,
    )
    assert [rule['name'] for rule in plan['rules'][:2]] == [('c', 'a'), ('c', 'b')]
    assert plan['rules'][1]['root'] is True
    assert list(plan['rules'][2]['labels']) == ['on', '1', 'null']
