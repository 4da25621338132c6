# SPDX-License-Identifier: Apache-2.0
"""docs/observability.md and examples/observability: what they name exists, and the parts of the example fit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.sdk import environment_variables

from tests.helpers.real_backends import MlFlow, Phoenix
from tests.helpers.run import REPOSITORY

PAGE = (REPOSITORY / 'docs' / 'observability.md').read_text()
EXAMPLE = REPOSITORY / 'examples' / 'observability'


def config(name: str) -> Any:
    return yaml.safe_load((EXAMPLE / name).read_text())


def section(heading: str) -> str:
    """The text under a heading of the third level."""
    return PAGE.partition(f'\n### {heading}\n')[2].partition('\n### ')[0].partition('\n## ')[0]


def exported(text: str) -> list[dict[str, str]]:
    """The variables that each of a text's fenced blocks exports."""
    blocks = re.findall(r'^ *```sh\n(.*?)^ *```$', text, re.MULTILINE | re.DOTALL)
    found = [dict(re.findall(r'^ *export (\w+)=(\S+)$', block, re.MULTILINE)) for block in blocks]
    return [variables for variables in found if variables]


def test_every_variable_of_opentelemetry_that_it_names_is_one() -> None:
    named = set(re.findall(r'\bOTEL_\w+\b', PAGE))
    assert len(named) > 5
    assert named <= {*vars(environment_variables), 'OTEL_RESOURCE_ATTRIBUTES'}


def test_the_recipes_for_phoenix_and_mlflow_are_those_that_are_tried(tmp_path: Path) -> None:
    phoenix, mlflow = Phoenix(tmp_path), MlFlow(tmp_path)
    phoenix.grpc_port, phoenix.port, mlflow.port = 4317, 6006, 5000
    assert exported(section('Arize Phoenix')) == [
        phoenix.addressed('grpc', 'my-run'),
        phoenix.addressed('http/protobuf', 'my-run'),
    ]
    assert exported(section('MLflow')) == [mlflow.addressed('http/protobuf', '0')]
    for backend in (phoenix, mlflow):
        assert f'| {backend.requirement.partition("==")[2]}' in PAGE


def test_the_example_mounts_the_files_that_its_services_read() -> None:
    for name, service in config('compose.yaml')['services'].items():
        for mount in service['volumes']:
            here, there, how = mount.split(':')
            assert (EXAMPLE / here).is_file() and how == 'ro'
            assert any(there in part for part in service.get('command', [there])), name
        assert all(port.startswith('127.0.0.1:') for port in service.get('ports', ()))
        assert re.search(r':v?\d+\.\d+', service['image']), 'a version that stays'


def test_its_services_find_each_other() -> None:
    services, collector, tempo = config('compose.yaml')['services'], config('collector.yaml'), config('tempo.yaml')
    listening = {f'tempo:{tempo["server"]["http_listen_port"]}', 'prometheus:9090'}
    received = tempo['distributor']['receivers']['otlp']['protocols']['grpc']['endpoint']
    listening.add('tempo:' + received.rpartition(':')[2])
    called = [exporter['endpoint'] for exporter in collector['exporters'].values()]
    called += [source['url'] for source in config('grafana-datasources.yaml')['datasources']]
    assert {re.sub(r'^\w+://', '', url).partition('/')[0] for url in called} == listening
    assert {name.partition(':')[0] for name in listening} < services.keys()
    ours = {
        endpoint['endpoint'].rpartition(':')[2] for endpoint in collector['receivers']['otlp']['protocols'].values()
    }
    assert {port.rpartition(':')[2] for port in services['collector']['ports']} == ours == {'4317', '4318'}
    assert '--web.enable-otlp-receiver' in services['prometheus']['command']


@pytest.mark.parametrize('with_phoenix', [False, True])
def test_the_collectors_pipelines_are_made_of_what_it_defines(with_phoenix: bool) -> None:
    whole = config('collector.yaml')
    if with_phoenix:
        [added] = re.findall(r'^  ```yaml\n(.*?)^  ```$', section('Arize Phoenix'), re.MULTILINE | re.DOTALL)
        more = yaml.safe_load(added)
        whole['service']['pipelines'] |= more.pop('service')['pipelines']
        for kind, parts in more.items():
            whole[kind] = {**whole.get(kind, {}), **parts}
    used: dict[str, set[str]] = {}
    for pipeline in whole['service']['pipelines'].values():
        for kind, names in pipeline.items():
            used.setdefault(kind, set()).update(names)
    assert {kind: set(whole[kind]) for kind in used} == used
    assert {name.partition('/')[0] for name in whole['service']['pipelines']} == {'traces', 'metrics'}
