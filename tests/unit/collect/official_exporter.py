# SPDX-License-Identifier: Apache-2.0
"""Writes OTLP JSON lines to stdout with the official JSON file exporter; runs in the oracle's own venv.

usage: official_exporter.py traces|metrics FILE
"""

import importlib
import json
import sys

from lens_auto.collect import otlp_sdk

# By name: the venv of the other tests need not have it.
package = importlib.import_module('opentelemetry.exporter.otlp.json.file')
for part in ('trace_exporter', 'metric_exporter'):
    importlib.import_module(f'{package.__name__}.{part}')
kind, path = sys.argv[1:]
with open(path) as lines:
    for line in lines:
        plain = json.loads(line)
        if kind == 'traces':
            package.trace_exporter.FileSpanExporter(stream=sys.stdout).export(otlp_sdk.spans(plain))
        else:
            package.metric_exporter.FileMetricExporter(stream=sys.stdout).export(otlp_sdk.metrics(plain))
