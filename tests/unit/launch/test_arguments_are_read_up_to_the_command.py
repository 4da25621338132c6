# SPDX-License-Identifier: Apache-2.0

import pytest

from lens_auto.launch.arguments import Options, UsageError, parse


def shown(options: Options) -> dict[str, object]:
    """What differs from a command line without options."""
    plain = Options()
    names = Options.__slots__
    return {name: getattr(options, name) for name in names if getattr(options, name) != getattr(plain, name)}


@pytest.mark.parametrize(
    ('line', 'expected'),
    [
        ('python run.py --rules x --help', {'command': ['python', 'run.py', '--rules', 'x', '--help']}),
        ('-- --odd name', {'command': ['--odd', 'name']}),
        ('-- -- x', {'command': ['--', 'x']}),
        ('- x', {'command': ['-', 'x']}),
        ('--rules a --rules=b x', {'rules': ['a', 'b'], 'command': ['x']}),
        ('--rules=a=b x', {'rules': ['a=b'], 'command': ['x']}),
        (
            '--exporter otlp --span-groups per_step,generation --service-name=s --set a=1 --set b= x',
            {
                'settings': {
                    'exporter': 'otlp',
                    'span_groups': 'per_step,generation',
                    'service_name': 's',
                    'set': ['a=1', 'b='],
                },
                'command': ['x'],
            },
        ),
        ('--telemetry t.yaml --run-dir d x', {'telemetry': 't.yaml', 'run_dir': 'd', 'command': ['x']}),
        ('--set export_rank=-1 x', {'settings': {'set': ['export_rank=-1']}, 'command': ['x']}),
        ('--strict --exec --no-summary x', {'strict': True, 'replace': True, 'summary': False, 'command': ['x']}),
        ('--progress x', {'progress': True, 'command': ['x']}),
        ('--progress=300 x', {'progress': True, 'steps': 300, 'command': ['x']}),
        ('--info', {'action': 'info'}),
        ('--info --help', {'action': 'help'}),
        ('-h x', {'action': 'help', 'command': ['x']}),
        ('--replay lens-runs/1', {'replay': 'lens-runs/1'}),
        ('', {}),
    ],
)
def test_options_end_where_the_command_begins(line: str, expected: dict[str, object]) -> None:
    assert shown(parse(line.split())) == expected


@pytest.mark.parametrize(
    ('line', 'message'),
    [
        ('--rulez x python', '--rulez`\n    did you mean `--rules`?'),
        ('--no-sumary x', 'did you mean `--no-summary`?'),
        ('-m module', 'unknown option `-m`'),
        ('--rules', '--rules needs a value: a rule file'),
        ('--rules --strict x', '--rules needs a value'),
        ('--exporter= x', '--exporter needs a value: file, otlp or console'),
        ('--strict=1 x', '--strict takes no value'),
        ('--progress=many x', '--progress=many needs a number of steps'),
        ('--progress=0 x', '--progress=0 needs a number of steps'),
        ('--set exporter x', 'field=value, not `exporter`'),
        ('--set =x x', 'field=value, not `=x`'),
    ],
)
def test_a_wrong_option_is_named_with_the_nearest_right_one(line: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(line.split())
    assert message in str(raised.value)
