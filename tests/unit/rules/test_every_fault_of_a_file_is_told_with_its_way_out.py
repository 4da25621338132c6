# SPDX-License-Identifier: Apache-2.0
"""The error texts, word for word: they are what a rule author sees of us."""

from pathlib import Path
from textwrap import dedent

import pytest

from lens_auto.rules.errors import RuleErrors
from lens_auto.rules.validate import read_file


def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | bytes) -> str:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / 'my.yaml'
    file.write_bytes(text if isinstance(text, bytes) else dedent(text).encode())
    with pytest.raises(RuleErrors) as raised:
        read_file(str(file))
    return str(raised.value)


def rule(*lines: str) -> str:
    """A file of one rule; its lines start on line 3."""
    return 'framework: t\nrules:\n- ' + '\n  '.join(lines) + '\n'


FUNCTION = ('kind: function', 'target: m:f', 'group: step', 'name: rl.f')

CASES = {
    'a misspelt key': (
        rule('kind: function', 'target: m:f', 'gruop: step', 'name: rl.f'),
        """\
        my.yaml:5:3  unknown key `gruop` in a function rule
            did you mean `group`?  Keys here: announce, apply, attributes, bucket, budget, force, group, \
inside_bucket, kind, name, native, only_from, outside, root, target, within
        """,
    ),
    'a missing key': (
        rule('kind: function', 'target: m:f', 'group: step'),
        """\
        my.yaml:3:3  a function rule needs `name`
            name: the span name; `{...}` holds an expression
        """,
    ),
    'a key without a value': (
        rule('kind: function', 'target:', 'group: step', 'name: rl.f'),
        """\
        my.yaml:4:3  `target` has no value
            give it one or remove it: `module:qualname`, or a list of alternatives of which the first that exists counts
        """,
    ),
    'no kind': (
        rule('target: m:f'),
        """\
        my.yaml:3:3  a rule needs `kind`
            available: annotate, block, call, function, http, interval, logger, loop, metric, ray, resource, timer, vllm
        """,
    ),
    'a misspelt kind': (
        rule('kind: functon'),
        """\
        my.yaml:3:9  unknown kind `functon`
            did you mean `function`?  Kinds: annotate, block, call, function, http, \
interval, logger, loop, metric, ray, resource, timer, vllm
        """,
    ),
    'a kind of a later version': (
        rule('kind: message', 'match: "for x in y:"'),
        """\
        my.yaml:3:9  kind `message` is not available in this version
            available: annotate, block, call, function, http, interval, logger, loop, metric, ray, resource, timer, vllm
        """,
    ),
    'paths of a client': (
        rule('kind: http', 'on: client', 'group: step', 'exclude: /x'),
        """\
        my.yaml:6:12  `exclude` is of requests to a server
            remove it, or write `on: server`
        """,
    ),
    'a pattern that is no header': (
        rule('kind: loop', 'target: train.py', 'match: "for $i range(3):"', 'group: step', 'name: rl.step'),
        """\
        my.yaml:5:18  invalid syntax
            a loop is matched by its header: `for $i in range($$$):`, `while $$$:`
        """,
    ),
    'a capture that the pattern does not have': (
        rule('kind: loop', 'target: train.py', 'match: "for $i in $$$:"', 'group: step', 'name: "rl.{match.j}"'),
        """\
        my.yaml:7:14  `match.j`: the pattern captures no `$j`
            Captured: i
        """,
    ),
    'a capture where nothing is captured': (
        rule('kind: call', 'target: m:f', 'match: g($$$)', 'group: step', 'name: rl.g', 'attributes: {x: match.x}'),
        """\
        my.yaml:8:19  `match.x`: the pattern captures no `$x`
            name one: `for $i in ...:`
        """,
    ),
    'a capture in a rule without a pattern': (
        rule(*FUNCTION, 'attributes: {x: match.x}'),
        """\
        my.yaml:7:19  `match` has no value here
            here: arg, caller, env, frame, result, self, version, and the names under `vars`
        """,
    ),
    'a number of places that is none': (
        rule('kind: call', 'target: m:f', 'match: g()', 'expect: 3-1', 'group: step', 'name: rl.g'),
        """\
        my.yaml:6:11  `expect: 3-1` is met by no place at all
            write a number, or quoted text: "1-3" for one to three, "1+" for one or more
        """,
    ),
    'a number of places that is a word': (
        rule('kind: call', 'target: m:f', 'match: g()', 'expect: many', 'group: step', 'name: rl.g'),
        """\
        my.yaml:6:11  `expect` must be a number of places, not `many`
            write a number, or quoted text: "1-3" for one to three, "1+" for one or more
        """,
    ),
    'a place in a pair of scopes': (
        rule('kind: call', 'target: "m:f, g"', 'match: g()', 'group: step', 'name: rl.g'),
        """\
        my.yaml:4:11  target `m:f, g`: f, g after the colon is not a name
            write `module:Class.method`, or the module alone for its own code
        """,
    ),
    'a force of nothing': (
        rule(*FUNCTION, 'force: true'),
        """\
        my.yaml:7:10  `force` means nothing without `apply: rewrite`
            remove it
        """,
    ),
    'a body that is asked for its caller': (
        rule(*FUNCTION, 'apply: rewrite', 'only_from: a.*', 'attributes: {n: result}'),
        """\
        my.yaml:8:14  `only_from` needs `apply: wrap`
            remove one of the two
        my.yaml:9:19  `result` has no value here
            here: arg, env, self, version, and the names under `vars`
        """,
    ),
    'a script without a function': (
        rule('kind: function', 'target: train.py', 'group: step', 'name: rl.f'),
        """\
        my.yaml:4:11  target `train.py` names no function of the script
            write `train.py:Worker.step`
        """,
    ),
    'a target with a dot for a colon': (
        rule('kind: function', 'target: [m:f, a.b.train]', 'group: step', 'name: rl.f'),
        """\
        my.yaml:4:17  target `a.b.train` has no colon between module and name
            write for example `a.b:train`
        """,
    ),
    'a pair that is none': (
        rule('kind: timer', 'pair: m:Timer.start', 'group: step', 'name: "{label}"'),
        """\
        my.yaml:4:9  pair `m:Timer.start` does not name a start and a stop
            write `module:Timer.start/stop`
        """,
    ),
    'an unknown group': (
        rule('kind: function', 'target: m:f', 'group: rolout', 'name: rl.f'),
        """\
        my.yaml:5:10  group `rolout` is not known
            did you mean `rollout`?
            known groups: advantage, checkpoint, data_plane, data_processing, efficiency, evaluate, forward_backward, \
generation, job, load_checkpoint, logprob, model_init, optimizer, per_prompt, policy_update, reference_policy, remote, \
reward, rollout, setup, step, wait
            a group of your own is declared under `groups:` at the top of the file
        """,
    ),
    'an unknown group of a label given short': (
        rule('kind: timer', 'with: m:t', 'name: "{label}"', 'labels: {a: step, b: stepp}').replace('stepp', 'drup'),
        """\
        my.yaml:6:24  group `drup` is not known
            known groups: advantage, checkpoint, data_plane, data_processing, efficiency, evaluate, forward_backward, \
generation, job, load_checkpoint, logprob, model_init, optimizer, per_prompt, policy_update, reference_policy, remote, \
reward, rollout, setup, step, wait
            a group of your own is declared under `groups:` at the top of the file
        """,
    ),
    'a label without a name': (
        rule('kind: timer', 'with: m:t', 'labels:', '  a: step'),
        """\
        my.yaml:6:5  the label `a` needs `name`
            give it one, or the whole rule: name: "rl.{label}"
        """,
    ),
    'a dropped label that says more': (
        rule('kind: timer', 'with: m:t', 'labels:', '  a: {drop: true, group: step}'),
        """\
        my.yaml:6:8  the label `a` is dropped, so its other keys mean nothing
            write `drop` alone
        """,
    ),
    'a timer that times nothing': (
        rule('kind: timer', 'labels: {a: drop}'),
        """\
        my.yaml:3:3  a timer rule needs `with` or `pair`
            with: my_trainer.timer:Timer.time
        """,
    ),
    'an interval without an end': (
        rule('kind: interval', 'start: m:f', 'group: step', 'name: rl.f'),
        """\
        my.yaml:3:3  an interval rule needs to know where a span starts and where it ends
            give it `start` and `stop`, or `lap`
        """,
    ),
    'a lap that would be current': (
        rule('kind: interval', 'lap: m:log', 'group: step', 'name: rl.f', 'current: true'),
        """\
        my.yaml:7:12  a lap cannot be current
            remove `current`, or use `start` and `stop`
        """,
    ),
    'an expression in braces': (
        rule(*FUNCTION, 'attributes: {n: "{arg.x}"}'),
        """\
        my.yaml:7:20  a set is not allowed in an expression
            an attribute is an expression already: write it without `{...}`
        """,
    ),
    'a boolean in quotes': (
        rule(*FUNCTION, 'root: "yes"'),
        """\
        my.yaml:7:9  `root` must be true or false, not `yes`
            write true or false, without quotes
        """,
    ),
    'a number for text': (
        rule('kind: function', 'target: m:f', 'group: step', 'name: 1'),
        """\
        my.yaml:6:9  `name` must be text, not the number `1`
            put it in quotes: "1"
        """,
    ),
    'a budget below one': (
        rule(*FUNCTION, 'budget: 0'),
        """\
        my.yaml:7:11  `budget` must be a whole number from 1 on, not the number `0`
            remove it for no limit
        """,
    ),
    'a wrong choice': (
        rule('kind: logger', 'target: m:f', 'metrics: {a: {name: x, instrument: gaug}}'),
        """\
        my.yaml:5:38  `instrument` cannot be `gaug`
            did you mean `gauge`?  It can be: counter, gauge, histogram
        """,
    ),
    'an expression that ends early': (
        rule(*FUNCTION, 'attributes: {rl.i: "frame.a + 1 +"}'),
        """\
        my.yaml:7:36  this is not a complete expression
            allowed: attributes and items, + - * / // %, comparison, and or not, \
len(), min(), max(), int(), float(), str(), round(), total(), mean(), count(), each()
        """,
    ),
    'a call that is not allowed': (
        rule(*FUNCTION, 'attributes:', '  rl.i: 1 + open(arg.path)'),
        """\
        my.yaml:8:15  `open()` cannot be called in an expression
            allowed: attributes and items, + - * / // %, comparison, and or not, \
len(), min(), max(), int(), float(), str(), round(), total(), mean(), count(), each()
        """,
    ),
    'an attribute of the interpreter': (
        rule(*FUNCTION, "attributes: {rl.i: 'self.cfg.__class__'}"),
        """\
        my.yaml:7:32  `__class__`: names that start with `__` are not allowed
            name a public attribute
        """,
    ),
    'an expression in a name': (
        rule('kind: function', 'target: m:f', 'group: step', 'name: "rl.{arg.x:.2f}"'),
        """\
        my.yaml:6:19  `:` and `!` formats are not supported
            use `round(x, 2)` or `str(x)`
        """,
    ),
    'an expression over two lines': (
        rule(*FUNCTION, 'attributes:', '  rl.i: >', '    arg.step +', '    lambda'),
        """\
        my.yaml:8:11  this is not a complete expression (character 12 of the text)
            allowed: attributes and items, + - * / // %, comparison, and or not, \
len(), min(), max(), int(), float(), str(), round(), total(), mean(), count(), each()
        """,
    ),
    'text without quotes of its own': (
        rule(*FUNCTION, 'attributes: {rl.backend: vllm}'),
        """\
        my.yaml:7:28  `vllm` is not known here
            Known: arg, caller, env, frame, result, self, version
            text is written with quotes of its own: "'vllm'"
        """,
    ),
    'a result before there is one': (
        rule('kind: function', 'target: m:f', 'group: step', 'name: "rl.{result.kind}"'),
        """\
        my.yaml:6:14  `result` has no value here
            here: arg, caller, env, frame, self, version, and the names under `vars`
        """,
    ),
    'a secret': (
        rule(*FUNCTION, 'attributes: {rl.t: env.HF_TOKEN}'),
        """\
        my.yaml:7:26  `env.HF_TOKEN` looks like a secret, and secrets are never recorded
            remove it
        """,
    ),
    'a rule given twice': (
        rule(*FUNCTION) + '- {name: rl.f, kind: function, group: step, target: m:f}\n',
        """\
        my.yaml:7:3  this rule repeats the one on line 3
            remove one of the two
        """,
    ),
    'a key given twice': (
        rule(*FUNCTION, 'name: rl.g'),
        """\
        my.yaml:7:3  key `name` is given twice
            the first one is on line 6
        """,
    ),
    'vars that need one another': (
        """\
        framework: t
        vars:
          a: b + 1
          b: {value: a}
        rules: []
        """,
        """\
        my.yaml:3:3  the var `a` is defined by itself
            a var may use others, not itself
        my.yaml:4:3  the var `b` is defined by itself
            a var may use others, not itself
        """,
    ),
    'a var that has no value where it is used': (
        'vars: {v: len(result)}\n' + rule('kind: function', 'target: m:f', 'group: step', 'name: "rl.{v}"'),
        """\
        my.yaml:7:14  `result` (in the var `v`) has no value here
            here: arg, caller, env, frame, self, version, and the names under `vars`
        """,
    ),
    'presets that contain one another': (
        """\
        framework: t
        presets: {a: [b], b: [a, rolout]}
        rules: []
        """,
        """\
        my.yaml:2:14  the preset `a` contains itself by way of others
            list groups instead
        my.yaml:2:22  the preset `b` contains itself by way of others
            list groups instead
        my.yaml:2:26  group `rolout` is not known
            did you mean `rollout`?  Known: a, advantage, all, b, checkpoint, data_plane, data_processing, default, \
efficiency, evaluate, forward_backward, generation, job, load_checkpoint, logprob, model_init, optimizer, per_prompt, \
per_step, policy_update, reference_policy, remote, reward, rollout, setup, step, wait
        """,
    ),
    'a version that is none': (
        'when: my_trainer>=new\n' + rule(*FUNCTION),
        """\
        my.yaml:1:7  `when`: `>=new` is not a version limit
            write for example `my_trainer>=1.2,<2`
        """,
    ),
    'several faults at once, in reading order': (
        """\
        framwork: t
        groups: {mine: {bucket: lost}}
        rules:
        - kind: function
          target: m
          group: step
          name: "rl.{"
        - 7
        """,
        """\
        my.yaml:1:1  unknown key `framwork` in a rule file
            did you mean `framework`?  Keys here: framework, groups, native, presets, rules, vars, vocabularies, when
        my.yaml:2:25  `bucket` cannot be `lost`
            It can be: idle, none, overhead, productive, wasted
        my.yaml:5:11  target `m` has no colon between module and name
            write for example `my_trainer.loop:train`
        my.yaml:7:13  a `{` without its `}`
            write `{{` for a brace in the name
        my.yaml:8:3  a rule must be a mapping, not the number `7`
            start it with `- kind: function`
        """,
    ),
    'an empty file': (
        '# nothing yet\n',
        """\
        my.yaml:1:1  this file is empty
            a rule file starts with `framework: my_trainer` and holds `rules:`, a list
        """,
    ),
    'a list for a file': (
        '- kind: function\n',
        """\
        my.yaml:1:1  a rule file is a mapping of keys to values; this is a list
            a rule file starts with `framework: my_trainer` and holds `rules:`, a list
        """,
    ),
    'a tab': (
        'framework: t\nrules:\n\t- kind: function\n',
        """\
        my.yaml:3:1  a tab is used for indentation or spacing
            YAML takes spaces only here
        """,
    ),
    'a star without quotes': (
        'framework: t\npresets:\n  mine: *\nrules: []\n',
        """\
        my.yaml:3:10  YAML reads text that starts with `*` as an alias
            put it in quotes: "*"
        """,
    ),
    'braces inside braces without quotes': (
        rule('{kind: function, name: rl.{label}}'),
        """\
        my.yaml:3:29  a `{...}` mapping is not closed or not separated by commas here
            inside `{...}`, text that contains braces or commas needs quotes: {name: "rl.{algorithm}.step"}
        """,
    ),
    'a Python object': (
        'framework: !!python/object/apply:os.system [ls]\nrules: []\n',
        """\
        my.yaml:1:12  the tag `!!python/object/apply:os.system` is not allowed
            remove it
        """,
    ),
    'an anchor in itself': (
        'framework: t\nrules: &a [*a]\n',
        """\
        my.yaml:2:8  this anchor contains an alias to itself
            write the value out
        """,
    ),
    'a byte of another encoding': (
        'framework: t\n# gr\u00fc\u00df\n'.encode() + 'name: \u00fc\n'.encode('latin-1'),
        """\
        my.yaml:3:7  byte 0xfc is not UTF-8
            save the file as UTF-8
        """,
    ),
    'a control character': (
        b'framework: t\nname: a\x00b\n',
        """\
        my.yaml:2:8  character U+0000 is not allowed in YAML
            remove it
        """,
    ),
}


@pytest.mark.parametrize('case', CASES)
def test_every_fault_of_a_file_is_told_with_its_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    text, expected = CASES[case]
    assert told(tmp_path, monkeypatch, text) + '\n' == dedent(expected)


def test_a_file_that_cannot_be_read_says_who_named_it(tmp_path: Path) -> None:
    with pytest.raises(RuleErrors) as raised:
        read_file(str(tmp_path / 'no.yaml'), '--rules')
    assert str(raised.value) == (
        f'{tmp_path}/no.yaml:1:1  cannot read this file: No such file or directory\n'
        '    it is named by --rules; check the path and its permissions'
    )
    with pytest.raises(RuleErrors, match='this is a folder'):
        read_file(str(tmp_path))
    with pytest.raises(RuleErrors, match='not a regular file'):
        read_file('/dev/null')


def test_columns_count_characters_after_text_of_many_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = rule(*FUNCTION, 'attributes: {rl.a: "\'\u00e9\U0001f600\' + str(arg.__x)"}')
    assert told(tmp_path, monkeypatch, text).startswith('my.yaml:7:38  `__x`')


def test_a_file_of_aliases_costs_no_more_than_its_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    levels = ['a0: &a0 [x, x, x, x, x, x, x, x, x]']
    levels += [f'a{n}: &a{n} [{", ".join([f"*a{n - 1}"] * 9)}]' for n in range(1, 30)]
    assert 'unknown key `a29`' in told(tmp_path, monkeypatch, '\n'.join(levels) + '\n')
