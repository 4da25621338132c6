# SPDX-License-Identifier: Apache-2.0
"""Vocabularies: one file, several sets of names, a setting that chooses."""

from pathlib import Path

import pytest

from lens_auto.rules import plan
from lens_auto.rules.compile import compile_files
from lens_auto.rules.errors import RuleErrors
from lens_auto.rules.validate import read_file

HEAD = 'framework: t\nvocabularies: [old, new]\nrules:\n'
RULE = '- {kind: function, target: m:f, group: job, name: %s}\n'
RULES = """\
- {kind: function, target: m:f, group: job, name: {old: rl.job, new: "rl.{arg.x}.run"}}
- {kind: function, target: m:g, group: job, name: same}
- {kind: timer, with: m:t, labels: {a: {group: step, name: {old: o, new: n}}}}
- {kind: logger, target: m:l, metrics: {loss: {name: {old: loss.old, new: loss.new}}, kl: {name: {old: ko, new: kn}}}}
- {kind: metric, target: m:h, metrics: [{name: {old: mo, new: mn}, value: elapsed}]}
"""


def compiled(folder: Path, text: str) -> dict[str, object]:
    file = folder / 'my.yaml'
    file.write_text(text)
    return compile_files([read_file(str(file))], '0')


def spoken(folder: Path, vocabulary: str) -> list[object]:
    data = plan.dump(compiled(folder, HEAD + RULES))
    (folder / 'p').write_bytes(data)
    f, g, t, log, h = plan.load(str(folder / 'p'), plan.sha256_hex(data), vocabulary)['rules']
    named = [f, g, t['labels']['a'], log['metrics']['loss'], log['metrics']['kl'], h['measures'][0]]
    return [each['name'][-1] for each in named]


def test_the_chosen_one_speaks(tmp_path: Path) -> None:
    new = ['rl.job', 'same', 'o', 'loss.old', 'ko', 'mo']
    assert spoken(tmp_path, 'old') == new
    assert spoken(tmp_path, 'new') == [
        (('c', 'rl.'), ('arg', 'x'), ('c', '.run')),
        'same',
        'n',
        'loss.new',
        'kn',
        'mn',
    ]
    # The first of the file, by its default name and for one that another file has.
    assert spoken(tmp_path, 'first') == spoken(tmp_path, 'of another file') == spoken(tmp_path, '') == new


def test_a_file_without_vocabularies_and_a_name_without_all_of_them_are_faults(tmp_path: Path) -> None:
    cases = {
        'framework: t\nrules:\n' + RULE % '{old: a, new: b}': 'must be text',
        HEAD + RULE % '{old: a}': 'no name for the vocabulary `new`',
        HEAD
        + '- {kind: function, target: m:f, group: job, name: {old: a, new: b, nwe: c}}\n': '`nwe` is no vocabulary',
        HEAD
        + '- {kind: function, target: m:f, group: job, name: {old: "{result.x}", new: b}}\n': '`result` has no value',
    }
    for text, said in cases.items():
        with pytest.raises(RuleErrors, match=said):
            compiled(tmp_path, text)
