# SPDX-License-Identifier: Apache-2.0
"""Renews what is generated from the code: the settings table of the configuration page and `rules/schema.json`.

Also checks every relative link of the Markdown pages, headings included. `make docs` runs it; with `--check`, as in CI,
nothing is written and whatever is out of date is an error.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PAGES = [
    *sorted(REPOSITORY.glob('*.md')),
    *sorted((REPOSITORY / 'docs').rglob('*.md')),
    *sorted((REPOSITORY / 'examples').rglob('*.md')),
]


def settings_table() -> str:
    """The fields of the `telemetry:` block, one after the other, from their own documentation."""
    from lens_auto.settings.fields import FIELDS, text

    entries = [
        f'### `{field.name}`\n\n{field.doc}\n\nTakes: {field.valid}. Default: `{text(field.default)}`. '
        f'Environment: `LENS_{field.suffix}`.\n'
        for field in FIELDS
    ]
    return '\n'.join(entries)


def rule_schema() -> tuple[Path, str]:
    """The schema that editors check rule files with, from the model that the launcher checks them with."""
    from lens_auto.rules import schema

    return REPOSITORY / 'rules' / 'schema.json', schema.text()


def block(page: str, generate: Callable[[], str]) -> tuple[Path, str]:
    """A page, and its text with the part between the two markers named after the generator renewed."""
    path = REPOSITORY / page
    name = generate.__name__.replace('_', '-')
    begin, end = f'<!-- {name}: written by docs/build.py -->\n', f'<!-- end of {name} -->'
    text = path.read_text(encoding='utf-8')
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f'{page}: needs the lines {begin.strip()!r} and {end!r}, once each')
    before, _, rest = text.partition(begin)
    return path, f'{before}{begin}\n{generate()}\n{end}{rest.partition(end)[2]}'


def anchors(page: Path) -> set[str]:
    """The names under which a page's headings can be linked to, as code hosts make them."""
    headings = re.findall(r'^#+\s+(.*?)\s*#*$', without_code(page.read_text(encoding='utf-8')), re.MULTILINE)
    return {re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-') for heading in headings}


def without_code(markdown: str) -> str:
    """The page without fenced blocks, in which `#` is a comment and brackets are code."""
    return re.sub(r'^(```+|~~~+).*?^\1', '', markdown, flags=re.MULTILINE | re.DOTALL)


def broken_links(page: Path) -> Iterator[str]:
    """Every relative link of a page that leads nowhere."""
    for target in re.findall(r'\]\(([^)\s]+)\)', without_code(page.read_text(encoding='utf-8'))):
        if re.match(r'[a-z]+:', target):
            continue
        name, _, anchor = target.partition('#')
        linked = (page.parent / name).resolve() if name else page
        if not linked.exists():
            yield f'{page.relative_to(REPOSITORY)}: {target} does not exist'
        elif anchor and linked.suffix == '.md' and anchor not in anchors(linked):
            yield f'{page.relative_to(REPOSITORY)}: {target} has no such heading'


def main() -> int:
    """Write or check; returns the exit code."""
    check = '--check' in sys.argv[1:]
    problems: list[str] = []
    for path, text in [block('docs/configuration.md', settings_table), rule_schema()]:
        if path.exists() and path.read_text(encoding='utf-8') == text:
            continue
        if check:
            problems.append(f'{path.relative_to(REPOSITORY)} is out of date: run `make docs` and commit what it writes')
        else:
            path.write_text(text, encoding='utf-8')
            print(f'wrote {path.relative_to(REPOSITORY)}')
    for page in PAGES:
        problems.extend(broken_links(page))
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f'docs: {len(PAGES)} pages, {len(problems)} problems')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
