# SPDX-License-Identifier: Apache-2.0
"""run.json: settings, command, processes, rules and losses of the run, for one launcher or several."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lens_auto.collect.collector import Collector
from lens_auto.collect.folder import open_run
from lens_auto.collect.spool import choose
from tests.unit.collect.journals import MS, SECOND, Journal, Lab, Sleeper, plain

RULES = [
    {'key': 'r1', 'kind': 'timer', 'group': 'step', 'name': 'rl.step', 'where': 'rules/trl.yaml:4'},
    {'key': 'r2', 'kind': 'function', 'group': 'refit', 'name': 'rl.refit', 'where': 'rules/trl.yaml:9', 'on': False},
]


def run_json(folder: str) -> dict[str, Any]:
    return json.loads(Path(folder, 'run.json').read_text())


def test_command_settings_processes_rules_and_losses(lab: Lab) -> None:
    journal = lab.journal(told={'dl.rank': 1})
    Path(lab.spool, 'processes.tsv').write_text(
        f'{journal.pid}\t{journal.start}\t3.11.7\trank\tarmed\t\ttrain.py\n'
        '77\t5\t3.9.2\t\tstood_down\tunsupported Python\tpip\n'
        'half a li'
    )
    journal.now += MS
    journal.end_span(1, 'rl.step')
    journal.report('patched', key='r1', target='trl:Timer.time', state='patched')
    journal.report('patched', key='r1', target='trl:Timer.start', state='patched')
    journal.report('missing', key='r2', target='trl:refit', reason='trl has no `refit`')
    journal.report('stats', r1=[4, 1, 0, 900, 0])
    journal.report('stats', r1=[10, 3, 1, 2500, 2])
    journal.report('fault', key='r1', where='wrapper exit', type='KeyError', frames=[], count=2)
    journal.report('settings', service_name='grpo', span_groups='all')
    journal.report('dropped', records=5, reason='no room')
    journal.report('dropped', records=8, reason='no room')
    facts = {
        'command': ['python', 'train.py', '--hf-token', 'hf_abcdefgh12345678', 'api_key=secret1'],
        'settings': {'span_groups': ['per_step', 'default'], 'exporter': ['file', 'LENS_EXPORTER=file']},
        'rules': RULES,
        'groups_off': ['generation'],
    }
    collector = lab.collector(facts=facts)
    collector.start()
    collector.finish(5.0, exit_code=3)

    told = run_json(lab.folder.path)
    assert told['command'] == ['python', 'train.py', '--hf-token', '[redacted]', 'api_key=[redacted]']
    assert told['settings']['exporter'] == ['file', 'LENS_EXPORTER=file']
    assert told['settings']['span_groups'] == ['all', "the program's own config"]
    resource = lab.lines('traces')[0]['resourceSpans'][0]['resource']
    assert plain(resource['attributes'])['service.name'] == 'trainer'  # a span that ended before the change
    assert (told['exit_code'], told['signal'], told['complete']) == (3, None, True)
    assert told['started'] < told['ended']
    assert told['run_id'] == lab.run.run_id and told['trace_id'] == lab.run.trace_id.hex()
    processes = {row['pid']: row for row in told['processes']}
    assert (processes[journal.pid]['rank'], processes[journal.pid]['spans']) == (1, 1)
    assert (processes[77]['outcome'], processes[77]['reason']) == ('stood_down', 'unsupported Python')
    assert len(processes) == 2
    first, second = told['rules']
    assert {name: first[name] for name in ('processes', 'calls', 'spans', 'errors', 'ns', 'over_budget')} == {
        'processes': 1,
        'calls': 10,
        'spans': 3,
        'errors': 1,
        'ns': 2500,
        'over_budget': 2,
    }
    assert first['faults'] == told['faults'] == {'KeyError in wrapper exit': 2}
    assert not second['on']
    assert second['missing'] == {'trl has no `refit`': 1} and second['where'] == 'rules/trl.yaml:9'
    assert told['dropped'] == {'no room': 8}
    assert told['groups_off'] == ['generation']


def test_a_run_in_progress_lists_what_has_been_open_for_long(lab: Lab) -> None:
    sleeper = Sleeper()
    journal = lab.journal(pid=sleeper.pid, start=sleeper.start)
    journal.now -= 90 * SECOND
    journal.open(1, 'rl.job')
    collector = lab.collector()
    collector.start()
    collector.finish(1.0)
    assert [row['name'] for row in run_json(lab.folder.path)['open']] == ['rl.job']
    sleeper.end()


def test_launchers_of_one_run_add_up(tmp_path: Path) -> None:
    collectors: list[Collector] = []
    for rank in (0, 1):
        environ = {'LENS_RUN_KEY': 'one', 'TMPDIR': str(tmp_path), 'HOME': str(tmp_path), 'RANK': str(rank)}
        run, folder = open_run(environ, str(tmp_path))
        folder._name = f'node-{rank}-1'  # two launchers, one test process
        spool = f'{choose(environ, run, folder).path}'
        who = ('node', rank, 1)
        if rank:
            spool += '-1'
            Path(spool).mkdir(0o700)
        journal = Journal(spool, told={'dl.rank': rank})
        journal.now += MS
        journal.end_span(rank + 1, 'rl.step', MS * (rank + 1))
        journal.point('rl.reward', rank)
        facts = {'rules': RULES}
        collectors.append(Collector(spool, folder, run, {'exporter': 'file'}, None, facts, environ, who))
    for code, collector in enumerate(collectors):
        collector.start()
        assert collector.finish(5.0, exit_code=code).complete
    told = run_json(collectors[0].folder.path)
    assert [part['role'] for part in told['launchers']] == ['rank 0', 'rank 1']
    assert told['exit_code'] == 1
    (row,) = told['spans']
    assert (row['count'], row['total'], row['least'], row['most']) == (2, 3 * MS, MS, 2 * MS)
    assert sorted(row['processes']) == ['rank 0', 'rank 1']
    assert [rule['key'] for rule in told['rules']] == ['r1', 'r2']
    assert told['counts']['spans'] == 2
    assert sorted(path.name for path in Path(collectors[0].folder.path).glob('traces-*')) == [
        'traces-node-0.jsonl',
        'traces-node-1.jsonl',
    ]
