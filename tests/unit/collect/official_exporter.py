# SPDX-License-Identifier: Apache-2.0
"""Writes OTLP JSON lines to stdout with the official JSON file exporter; runs in the oracle's own venv.

usage: official_exporter.py traces|metrics FILE
"""

import json
import sys

from opentelemetry.exporter.otlp.json.file.metric_exporter import FileMetricExporter
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter

from lens_auto.collect import otlp_sdk

kind, path = sys.argv[1:]
with open(path) as lines:
    for line in lines:
        plain = json.loads(line)
        if kind == 'traces':
            FileSpanExporter(stream=sys.stdout).export(otlp_sdk.spans(plain))
        else:
            FileMetricExporter(stream=sys.stdout).export(otlp_sdk.metrics(plain))
