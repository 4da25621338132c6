# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of docs/report.md: what `lens-report html` shows, in a headless Chromium.

usage: python docs/pictures.py report-sync=lens-runs/A report-async=lens-runs/B

Each becomes docs/pictures/<name>.png, with a step in the middle of the run selected. The runs are those of the demo:

    lens-instrument python examples/run_grpo.py
    lens-instrument python examples/run_grpo.py --ray --async --steps 40
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]


def main() -> None:
    """Make them."""
    sys.path.insert(0, str(REPOSITORY))
    from lens_auto.report.folder import load
    from lens_auto.report.page import render
    from lens_auto.report.steps import steps
    from tests.web.chromium import PROGRAM, Page

    if not PROGRAM:
        raise SystemExit('there is no Chromium here')
    for item in sys.argv[1:]:
        name, _, folder = item.partition('=')
        run = load(folder)
        listed = steps(run.store, run.tree)
        middle = listed[len(listed) // 2].number if listed else 0
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / 'report.html'
            path.write_text(render(run), encoding='utf-8')
            page = Page(f'{path.as_uri()}#step={middle}', 1180, 1000)
            try:
                page.js('window.scrollTo(0, 0)')
                page.js('new Promise((done) => setTimeout(done, 300))')
                output = REPOSITORY / 'docs' / 'pictures' / f'{name}.png'
                output.parent.mkdir(exist_ok=True)
                page.picture(output)
                print(f'{output.relative_to(REPOSITORY)}: {output.stat().st_size // 1000} kB')
            finally:
                page.close()


if __name__ == '__main__':
    main()
