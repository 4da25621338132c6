# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[3] / 'examples'


def test_no_line_of_the_program_mentions_the_agent():
    sources = sorted(EXAMPLES.rglob('*.py'))

    assert len(sources) > 10
    assert [
        path.name for path in sources if 'lens_auto' in path.read_text() or 'opentelemetry' in path.read_text()
    ] == []
