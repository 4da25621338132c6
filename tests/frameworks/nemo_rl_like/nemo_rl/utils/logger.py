# SPDX-License-Identifier: Apache-2.0
"""Hands metrics to every backend, each of which has the method that the whole has."""

from __future__ import annotations

import abc
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class LoggerInterface(abc.ABC):
    @abc.abstractmethod
    def log_metrics(
        self,
        metrics: dict[str, Any],
        step: int,
        prefix: str | None = '',
        step_metric: str | None = None,
        step_finished: bool = False,
    ) -> None: ...


class FileLogger(LoggerInterface):
    """A line of JSON for each call."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path

    def log_metrics(
        self,
        metrics: dict[str, Any],
        step: int,
        prefix: str | None = '',
        step_metric: str | None = None,
        step_finished: bool = False,
    ) -> None:
        with open(self.path, 'a') as file:
            file.write(json.dumps({'step': step, 'prefix': prefix, **metrics}, default=str) + '\n')


class Logger(LoggerInterface):
    def __init__(self, cfg: Mapping[str, Any]) -> None:
        self.loggers: list[LoggerInterface] = [
            FileLogger(Path(cfg['log_dir']) / f'{name}.jsonl') for name in ('one', 'two')
        ]

    def log_metrics(
        self,
        metrics: dict[str, Any],
        step: int,
        prefix: str | None = '',
        step_metric: str | None = None,
        step_finished: bool = False,
    ) -> None:
        for logger in self.loggers:
            logger.log_metrics(metrics, step, prefix, step_metric, step_finished)


class RayGpuMonitorLogger:
    """Logs from a thread of its own."""

    def __init__(self, parent_logger: Logger) -> None:
        self.parent_logger = parent_logger

    def start(self) -> None:
        self.thread = threading.Thread(target=self._collect, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.thread.join()

    def _collect(self) -> None:
        for step in range(3):
            self.parent_logger.log_metrics({'node.0.gpu.0.util': 50.0, 'reward': 99.0}, step, prefix='ray')
