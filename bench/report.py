# SPDX-License-Identifier: Apache-2.0
"""What `lens-report` takes: the overview against `json.loads` over the same files, its memory, and the page's frames.

Time is that of the processor, of both in turn: the median ratio and its range are printed. Memory is the most that was
resident. The page is measured where there is a Chromium.

usage: python bench/report.py [spans, 1000000 by default]
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PROCESSES = 512
HOSTS = 8
SPANS_A_STEP = 10
ROUNDS = 5
# name, group, bucket, name of the enclosing one, milliseconds
PHASES = (
    ('data_processing', 'data_processing', 'overhead', '', 20),
    ('collect_rollouts', 'rollout', '', '', 500),
    ('generate', 'generation', 'productive', 'collect_rollouts', 470),
    ('compute_rewards', 'reward', 'productive', '', 30),
    ('compute_logprobs', 'logprob', 'overhead', '', 120),
    ('policy_update', 'policy_update', 'productive', '', 400),
    ('forward_backward', 'forward_backward', '', 'policy_update', 290),
    ('optimizer', 'optimizer', '', 'policy_update', 80),
    ('weight_sync', 'refit', 'overhead', '', 40),
)
_READ_ONLY = """
import json, sys
for path in sys.argv[1:]:
    with open(path, 'rb') as file:
        for line in file:
            json.loads(line)
"""


def _attributes(items: dict[str, object]) -> list[dict[str, object]]:
    return [
        {'key': key, 'value': {'intValue': str(item)} if isinstance(item, int) else {'stringValue': item}}
        for key, item in items.items()
    ]


def make(folder: Path, spans: int) -> list[str]:
    """Files of that many spans: ranks that train in step, a file a host."""
    draw = random.Random(1)
    steps = max(1, spans // PROCESSES // SPANS_A_STEP)
    paths = [str(folder / f'traces-node{host}-1.jsonl') for host in range(HOSTS)]
    files = [open(path, 'w') for path in paths]
    ident = 0
    for rank in range(PROCESSES):
        told: dict[str, object] = {
            **{'telemetry.sdk.name': 'lens-auto', 'host.name': f'node{rank * HOSTS // PROCESSES}', 'dl.rank': rank},
            **{'process.pid': 1000 + rank, 'dl.world_size': PROCESSES, 'service.instance.id': f'{rank + 1:032x}'},
        }
        resource = json.dumps({'attributes': _attributes(told)}, separators=(',', ':'))
        now = 1_796_031_540_000_000_000
        batch: list[str] = []
        for step in range(steps):
            ids: dict[str, int] = {}
            ident += 1
            top, at, inner, written = ident, now, now, []

            def span(name: str, own: int, parent: int, begin: int, end: int, items: dict[str, object]) -> str:
                plain = {
                    **{'traceId': f'{7:032x}', 'spanId': f'{own:016x}'},
                    **({'parentSpanId': f'{parent:016x}'} if parent else {}),
                    **{'flags': 256, 'name': f'rl.grpo.{name}', 'kind': 1},
                    **{'startTimeUnixNano': str(begin), 'endTimeUnixNano': str(end)},
                    **{'attributes': _attributes(items), 'status': {}},
                }
                return json.dumps(plain, separators=(',', ':'))

            for name, group, bucket, outer, ms in PHASES:
                ident += 1
                ids[name] = ident
                length = round(ms * 1e6 * draw.uniform(0.97, 1.03))
                items: dict[str, object] = {'lens.group': group, **({'rl.bucket': bucket} if bucket else {})}
                begin = inner if outer else at
                written.append(span(name, ident, ids[outer] if outer else top, begin, begin + length, items))
                inner = begin + length if outer else at
                at = at if outer else at + length
            written.append(span('step', top, 0, now, at, {'lens.group': 'step', 'rl.iteration': step + 1}))
            now = at
            batch += written
            if len(batch) >= 200 or step == steps - 1:
                text = (
                    f'{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"spans":[{",".join(batch)}]}}]}}]}}\n'
                )
                files[rank * HOSTS // PROCESSES].write(text)
                batch = []
    for file in files:
        file.close()
    return paths


def measure(*command: str) -> tuple[float, float]:
    """Seconds of processor time, and MB resident at most, of a command."""
    process = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.DEVNULL, cwd=REPOSITORY, env={**os.environ, 'COLUMNS': '120'}
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f'{command}: exit {process.returncode}')
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def page(folder: Path) -> None:
    """First paint and frames of the page of a run of 100,000 spans."""
    sys.path.insert(0, str(REPOSITORY))
    from tests.web.chromium import PROGRAM, Page

    if not PROGRAM:
        print('page: no Chromium here')
        return
    output = str(folder / 'report.html')
    subprocess.run(
        [sys.executable, '-m', 'lens_auto.report.cli', 'html', str(folder), '-o', output], cwd=REPOSITORY, check=True
    )
    browser = Page(Path(output).as_uri(), 1600, 1000)
    try:
        count, paint = browser.js('[lensReport.count, lensReport.firstPaint]')
        browser.js("document.getElementById('view').scrollIntoView()")
        # In and out again, a frame each: what the script takes to draw one, and how many there are a second.
        frames = browser.js(
            """(async () => {
              const view = document.getElementById('view'), box = view.getBoundingClientRect(), took = [];
              const turn = (by) => view.dispatchEvent(new WheelEvent('wheel',
                { deltaY: by, clientX: box.x + 700, clientY: box.y + 60, cancelable: true }));
              const begun = performance.now();
              for (let n = 0; n < 120; n++) {
                turn(n < 60 ? -60 : 60);
                await new Promise(requestAnimationFrame);
                took.push(lensReport.last);
              }
              took.sort((a, b) => a - b);
              return [1000 * 120 / (performance.now() - begun), took[60], took[119]];
            })()"""
        )
        print(
            f'page: {count:,} spans, first paint after {paint:.0f} ms; zooming {frames[0]:.0f} frames a second, '
            f'a frame drawn in {frames[1]:.1f} ms (median), {frames[2]:.1f} ms (worst)'
        )
    finally:
        browser.close()


def main() -> None:
    """Measure, and print."""
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for spans in (largest // 4, largest):
        with tempfile.TemporaryDirectory() as temporary:
            paths = make(Path(temporary), spans)
            size = sum(os.path.getsize(path) for path in paths) / 1e6
            ratios: list[tuple[float, float, float]] = []
            most = 0.0
            for _ in range(ROUNDS):
                plain, _ = measure('-c', _READ_ONLY, *paths)
                taken, memory = measure('-m', 'lens_auto.report.cli', temporary)
                ratios.append((taken / plain, taken, plain))
                most = max(most, memory)
            ratio, taken, plain = sorted(ratios)[ROUNDS // 2]
            print(
                f'overview of {spans:,} spans of {PROCESSES} processes ({size:.0f} MB): '
                f'{ratio:.2f} x json.loads ({min(ratios)[0]:.2f}-{max(ratios)[0]:.2f}; '
                f'{taken:.1f} s against {plain:.1f} s), {most:.0f} MB'
            )
    with tempfile.TemporaryDirectory() as temporary:
        make(Path(temporary), 100_000 + PROCESSES * SPANS_A_STEP)
        page(Path(temporary))


if __name__ == '__main__':
    main()
