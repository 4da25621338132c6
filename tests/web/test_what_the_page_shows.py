# SPDX-License-Identifier: Apache-2.0
"""Hover, keys, the critical path, heat map, curves, dark and light, each by what a person would see."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lens_auto.report import page as page_module
from lens_auto.report.folder import load
from tests.unit.report.planted import BEGIN, MS, Plant, synchronous
from tests.web.chromium import PROGRAM, Page

pytestmark = pytest.mark.skipif(not PROGRAM, reason='no Chromium on this machine')

STEP = 1002  # milliseconds; in it `policy_update` from 621 to 971, `generate` from 21 to 471
HEAD, HEIGHT, LEFT = 22, 16, 170  # of the timeline, as page.js draws it
PATH = [0xD5, 0x00, 0xF9]
CURVES: dict[str, list[float]] = {
    'rl.reward.mean': [0.0, 1.0, 2.0, 4.0],
    'rl.loss': [3.0, float('nan'), 1.0, 2.0],
    'rl.entropy': [5.0, 5.0],
    'rl.kl': [0.25],
}


def _plant() -> Plant:
    plant = synchronous(steps=8)
    for worker in range(1, 4):
        plant.process(worker, lens__role='worker', ray__actor__class='Gen', ray__actor__name=f'gen-{worker}')
        for step in range(8):
            begin = BEGIN + step * STEP * MS + 30 * MS
            plant.span(worker, 'rl.grpo.generate', begin, begin + (300 + 80 * (worker - 1)) * MS)
    plant.span(1, '<img src=x onerror="window.pwned=1">', BEGIN + 500 * MS, BEGIN + 900 * MS, error=True)
    return plant


@pytest.fixture(scope='module')
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp('run')
    metrics = [
        {
            'name': name,
            'unit': '{token}',
            'gauge': {
                'dataPoints': [
                    {'timeUnixNano': str(BEGIN + 1000 * MS * n), 'asDouble': value} for n, value in enumerate(values)
                ]
            },
        }
        for name, values in CURVES.items()
    ]
    plain = {'resourceMetrics': [{'resource': {}, 'scopeMetrics': [{'metrics': metrics}]}]}
    (folder / 'metrics-node0-1.jsonl').write_text(json.dumps(plain) + '\n')
    path = folder / 'report.html'
    path.write_text(page_module.render(_plant().run(folder)), encoding='utf-8')
    return path.as_uri()


@pytest.fixture
def page(browser: Page, url: str) -> Iterator[Page]:
    browser.complaints.clear()
    browser.prefer('light')
    browser.go(url)
    yield browser
    # The tests read pixels; the page does not.
    assert [one for one in browser.complaints if 'getImageData' not in one] == []


def settle(page: Page) -> None:
    page.js('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')


def view(page: Page) -> tuple[float, float, float]:
    found: list[float] = page.js('[lensReport.view.from, lensReport.view.to, lensReport.view.top]')
    return found[0], found[1], found[2]


def box(page: Page, name: str) -> dict[str, float]:
    return page.js(
        f"(() => {{ const b = document.getElementById('{name}').getBoundingClientRect();"
        ' return {x: b.x, y: b.y, w: b.width, h: b.height}; })()'
    )


def place(page: Page, ms: float, line: int) -> tuple[float, float]:
    """Where in the window a moment of the run is, in a line of the timeline."""
    page.js("document.getElementById('view').scrollIntoView()")
    canvas, (low, high, top) = box(page, 'view'), view(page)
    x = canvas['x'] + 1 + LEFT + (ms * 1000 - low) / (high - low) * (canvas['w'] - 2 - LEFT)
    return x, canvas['y'] + 1 + HEAD + HEIGHT * line + HEIGHT / 2 - top


def text(page: Page, name: str) -> str:
    return page.js(f"document.getElementById('{name}').innerText")


def pixel(page: Page, x: float, y: float) -> list[int]:
    """Red, green and blue of the timeline at a place of the window."""
    canvas = box(page, 'view')
    at = f'{round(x - canvas["x"] - 1)} * devicePixelRatio, {round(y - canvas["y"] - 1)} * devicePixelRatio'
    return page.js(f"[...document.getElementById('view').getContext('2d').getImageData({at}, 1, 1).data].slice(0, 3)")


def columns_of(page: Page, colour: list[int]) -> tuple[float, float] | None:
    """The first and the last moment, in milliseconds, at which a colour is in the timeline; None if it is not."""
    found: list[int] = page.js(
        """((r, g, b) => {
          const view = document.getElementById('view'), { width, height } = view;
          const data = view.getContext('2d').getImageData(0, 0, width, height).data, found = new Set();
          for (let i = 0; i < data.length; i += 4) {
            if (data[i] === r && data[i + 1] === g && data[i + 2] === b) found.add((i / 4) % width / devicePixelRatio);
          }
          return found.size ? [Math.min(...found), Math.max(...found)] : [];
        })"""
        + f'({colour[0]}, {colour[1]}, {colour[2]})'
    )
    if not found:
        return None
    low, high, _ = view(page)
    wide = box(page, 'view')['w'] - 2 - LEFT
    return tuple((low + (x - LEFT) / wide * (high - low)) / 1000 for x in found)  # type: ignore[return-value]


# ---- hover ----


def test_the_pointer_over_a_span_shows_what_it_is(page: Page) -> None:
    x, y = place(page, 2 * STEP + 800, 1)
    page.hover(x, y)
    assert text(page, 'tip').split('\n') == ['rl.grpo.policy_update', '350 ms  at +2.63 s', 'driver']
    tip = box(page, 'tip')
    assert 0 < tip['x'] - x < 40 and 0 < tip['y'] - y < 40  # beside the pointer
    page.hover(*place(page, 2 * STEP + 800, 0))
    assert text(page, 'tip').split('\n')[:2] == ['rl.grpo.step', '1.00 s  at +2.00 s']


def test_the_pointer_beside_every_span_shows_nothing(page: Page, url: str) -> None:
    page.go(url + '#step=3')  # the step before it goes on behind the names
    inside = place(page, 2 * STEP + 800, 1)
    beside = [
        place(page, 2 * STEP + 800, 2),  # below `policy_update` nothing is in it
        (box(page, 'view')['x'] + 150, place(page, 2 * STEP + 800, 0)[1]),  # names of processes
        (inside[0], box(page, 'view')['y'] + 8),  # the axis
        (inside[0], box(page, 'view')['y'] - 30),  # outside
    ]
    for x, y in beside:
        page.hover(*inside)
        assert not page.js("document.getElementById('tip').hidden")
        page.hover(x, y)
        assert page.js("document.getElementById('tip').hidden"), (x, y)


def test_what_is_shown_of_a_span_is_text_stays_in_the_window_and_says_that_it_failed(page: Page) -> None:
    page.hover(*place(page, 700, 4))  # a line of space between two processes is a line and 2 px
    said = text(page, 'tip').split('\n')
    assert said == ['<img src=x onerror="window.pwned=1">', '400 ms  at +500 ms', 'Gen/gen-1', 'failed']
    assert page.js("document.querySelectorAll('#tip img').length") == 0 and page.js('window.pwned') is None
    page.hover(*place(page, 8 * STEP - 40, 1))  # at the right edge
    tip = box(page, 'tip')
    assert tip['x'] + tip['w'] <= page.js('window.innerWidth')


# ---- keys ----


@pytest.mark.parametrize(
    ('keys', 'wider', 'later'),
    [
        *((key, 0.7, 0.0) for key in ('+', '=', 'w')),
        *((key, 1.4, 0.0) for key in ('-', 's')),
        *((key, 1.0, 0.15) for key in ('ArrowRight', 'd')),
        *((key, 1.0, -0.15) for key in ('ArrowLeft', 'a')),
    ],
)
def test_keys_zoom_and_pan(page: Page, keys: str, wider: float, later: float) -> None:
    page.js("document.getElementById('view').focus()")
    for _ in range(4):
        page.key('+')
    low, high, _ = view(page)
    page.key(keys)
    after = view(page)
    assert after[1] - after[0] == pytest.approx(wider * (high - low))
    middle = (low + high) / 2 + later * (high - low)
    assert (after[0] + after[1]) / 2 == pytest.approx(middle)


@pytest.mark.parametrize('key', ['0', 'Home'])
def test_a_key_shows_the_whole_run(page: Page, key: str) -> None:
    page.js("document.getElementById('view').focus()")
    for _ in range(6):
        page.key('+')
    page.key(key)
    low, high, _ = view(page)
    assert low <= 0 and high >= 8 * STEP * 1000


@pytest.mark.parametrize('key', ['Enter', 'n'])
def test_a_key_goes_on_to_the_next_match_and_escape_forgets_it(page: Page, key: str) -> None:
    page.key('/')
    page.type('weight_sync')
    page.js("document.getElementById('view').focus()")
    for number in (1, 2, 3):
        page.key(key)
        assert text(page, 'found') == f'{number} of 8'
    assert 'rl.grpo.step > rl.grpo.weight_sync' in text(page, 'selected')
    page.key('Escape')
    assert [text(page, name) for name in ('found', 'selected')] == ['', '']
    assert page.js("[document.getElementById('search').value, lensReport.chosen(), location.hash]") == ['', -1, '']


def test_everything_is_reached_by_tab_and_a_bar_opens_with_enter(page: Page) -> None:
    page.js("document.getElementById('theme').focus()")
    seen: list[str] = []
    for _ in range(30):
        page.key('Tab')
        focused: str = page.js("document.activeElement.id || document.activeElement.getAttribute('aria-label') || ''")
        seen.append(focused)
        if focused == 'step 3, 1.00 s':
            break
    assert [name for name in seen if not name.startswith('step')] == ['search', 'next', 'fit', 'view']
    assert [name for name in seen if name.startswith('step')] == [f'step {n}, 1.00 s' for n in (1, 2, 3)]
    page.key('Enter')
    assert text(page, 'path').startswith('Critical path of step 3, 1.00 s')
    assert page.js('location.hash') == '#step=3'


def test_keys_move_up_and_down_where_there_is_more_than_fits(tmp_path: Path) -> None:
    plant = Plant()
    for process in range(60):
        plant.process(process, lens__role='worker')
        plant.span(process, 'work', BEGIN, BEGIN + MS)
    path = tmp_path / 'report.html'
    path.write_text(page_module.render(plant.run(tmp_path)), encoding='utf-8')
    page = Page(path.as_uri())
    try:
        page.js("document.getElementById('view').focus()")
        for key, wanted in (('ArrowUp', 0), ('ArrowDown', 40), ('ArrowDown', 80), ('ArrowUp', 40)):
            page.key(key)
            assert view(page)[2] == wanted
        page.hover(*place(page, 0.5, 0))
    finally:
        page.close()


# ---- the critical path ----


def test_the_critical_path_of_a_step_is_marked_in_the_timeline(page: Page, url: str) -> None:
    assert columns_of(page, PATH) is None
    page.go(url + '#step=5')
    settle(page)
    page.key('0')  # nothing has the focus: still the step
    marked = columns_of(page, PATH)
    assert marked is not None
    assert marked[0] == pytest.approx(4 * STEP, abs=5) and marked[1] == pytest.approx(5 * STEP, abs=5)
    # Under what held the step up at each moment, and under nothing else: `generate`, not the phase around it.
    for ms, line, on_path in ((4 * STEP + 250, 2, True), (4 * STEP + 250, 1, False), (4 * STEP + 800, 1, True)):
        x, y = place(page, ms, line)
        assert (pixel(page, x, y + HEIGHT / 2 - 2) == PATH) is on_path, (ms, line)
    assert page.js("document.querySelectorAll('#bars g.chosen').length") == 1
    rows: list[str] = page.js("[...document.querySelectorAll('#path tbody tr')].map((tr) => tr.innerText)")
    assert [row.split('\t') for row in rows][:2] == [
        ['rl.grpo.generate', 'driver', '450 ms', '44.9 %'],
        ['rl.grpo.policy_update', 'driver', '350 ms', '34.9 %'],
    ]
    page.hover(*place(page, 4 * STEP + 800, 1))
    assert text(page, 'tip').endswith('on the critical path')
    page.js("document.getElementById('view').focus()")
    page.key('Escape')
    settle(page)
    assert columns_of(page, PATH) is None
    assert text(page, 'path') == '' and page.js("document.querySelectorAll('#bars g.chosen').length") == 0


def test_a_bar_shows_its_step(page: Page) -> None:
    page.js("document.querySelectorAll('#bars g')[6].dispatchEvent(new MouseEvent('click'))")
    assert page.js('location.hash') == '#step=7'
    low, high, _ = view(page)
    assert 5.9 * STEP < low / 1000 < 6 * STEP < 7 * STEP < high / 1000 < 7.1 * STEP
    title: str = page.js("document.querySelector('#bars g.chosen title').textContent")
    assert title.split('\n')[:3] == ['step 7: 1.00 s', 'generation 450 ms', 'training 350 ms']


def test_bars_are_as_tall_as_what_the_steps_were_spent_on(page: Page) -> None:
    heights: list[float] = page.js(
        "[...document.querySelectorAll('#bars g')[2].querySelectorAll('rect')].map((r) => +r.getAttribute('height'))"
    )
    spent = [450, 350, 120, 30, 30, 20, 2]  # in the order of the stack
    assert heights == [pytest.approx(170 * one / STEP, rel=0.01) for one in spent]
    legend = text(page, 'legend').split()
    assert legend == ['generation', 'training', 'logprob', 'reward', 'refit', 'data', 'other']


# ---- heat map and curves ----


def test_the_heat_map_marks_who_is_slow_and_by_how_much(page: Page) -> None:
    heads: list[str] = page.js("[...document.querySelectorAll('#heat th')].map((th) => th.textContent)")
    column = heads.index('rl.grpo.generate')
    rows: list[list[Any]] = page.js(
        f"""[...document.querySelectorAll('#heat tbody tr')].map((tr) => {{
          const cell = tr.cells[{column}], shade = getComputedStyle(cell).backgroundColor;
          return [tr.cells[0].textContent, cell.textContent, cell.title, shade];
        }})"""
    )
    shades = {row[0]: float((re.findall(r'[\d.]+', row[3]) + ['1'])[3]) for row in rows}
    assert [row[:3] for row in rows] == [
        ['driver', '450 ms !', '+18 % against the median of 4'],
        ['Gen/gen-1', '300 ms', '-21 % against the median of 4'],
        ['Gen/gen-2', '380 ms', '+0 % against the median of 4'],
        ['Gen/gen-3', '460 ms !!', '+21 % against the median of 4'],
    ]
    assert shades['Gen/gen-1'] == shades['Gen/gen-2'] == 0
    assert shades['driver'] == pytest.approx(450 / 380 - 1, abs=0.01)
    assert shades['Gen/gen-3'] == pytest.approx(460 / 380 - 1, abs=0.01)


def test_curves_go_through_the_points(page: Page) -> None:
    told: list[list[str]] = page.js(
        """[...document.querySelectorAll('#curves figure')].map((figure) => {
          const path = figure.querySelector('path');
          return [figure.querySelector('figcaption').textContent, path ? path.getAttribute('d') : '',
            ...[...figure.querySelectorAll('text')].map((one) => one.textContent)];
        })"""
    )
    found = {caption.split()[0]: (caption, course, labels) for caption, course, *labels in told}
    assert found.keys() == CURVES.keys()
    for name, values in CURVES.items():
        caption, course, labels = found[name]
        numbers = [value for value in values if value == value]
        assert caption.startswith(f'{name}  {values[0]:g} → {values[-1]:g} {{token}}')
        if len(numbers) < 2:
            assert course == ''
            continue
        low, high = min(numbers), max(numbers)
        assert labels == [f'{high:g}', f'{low:g}']
        points = [
            (2 + 256 * n / (len(values) - 1), 84 - 78 * ((value - low) / (high - low) if high > low else 0.5))
            for n, value in enumerate(values)
            if value == value
        ]
        drawn = [(float(x), float(y)) for x, y in re.findall(r'[ML]([\d.]+),([\d.]+)', course)]
        assert drawn == [pytest.approx(point, abs=0.06) for point in points]
        assert course.count('M') == (2 if len(numbers) < len(values) else 1)  # what is no number is a gap
    assert 'best 4' in found['rl.reward.mean'][0] and 'best 1' in found['rl.loss'][0]
    assert page.js("getComputedStyle(document.querySelector('#curves path')).stroke") != 'none'


def test_a_long_curve_keeps_its_ends_its_lowest_and_its_highest(tmp_path: Path) -> None:
    values = [1.0] * 7001
    values[1], values[3335], values[7000] = -9.0, 50.0, 2.0
    points = [{'timeUnixNano': str(BEGIN + n), 'asDouble': value} for n, value in enumerate(values)]
    metric = {'name': 'rl.loss', 'gauge': {'dataPoints': points}}
    plain = {'resourceMetrics': [{'resource': {}, 'scopeMetrics': [{'metrics': [metric]}]}]}
    (tmp_path / 'metrics-a-1.jsonl').write_text(json.dumps(plain) + '\n')
    synchronous(steps=2).write(tmp_path)
    text = page_module.render(load(str(tmp_path)))
    data = json.loads(text.partition('id="data">')[2].partition('</script>')[0])
    shown: list[float] = data['metrics'][0]['v']
    assert (shown[0], shown[-1], min(shown), max(shown)) == (1.0, 2.0, -9.0, 50.0)
    assert len(shown) < 600


# ---- dark and light ----


def luminance(colour: list[int]) -> float:
    parts = [one / 255 for one in colour]
    linear = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: list[int], other: list[int]) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def colours(page: Page) -> dict[str, list[int]]:
    """What text of each kind stands on what."""
    told: dict[str, str] = page.js(
        """(() => {
          const of = (name, key) => getComputedStyle(document.querySelector(name))[key];
          return { ground: of('body', 'backgroundColor'), ink: of('body', 'color'), soft: of('.hint', 'color'),
            link: of('nav a', 'color'), head: of('th', 'color'), panel: of('.verdict', 'backgroundColor') };
        })()"""
    )
    return {name: [int(part) for part in re.findall(r'\d+', one)[:3]] for name, one in told.items()}


@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_the_page_is_as_dark_as_the_system_asks_and_can_be_read(page: Page, url: str, scheme: str) -> None:
    page.prefer(scheme)
    page.go(url)
    found = colours(page)
    assert (luminance(found['ground']) < 0.1) is (scheme == 'dark')
    for name in ('ink', 'soft', 'link', 'head'):
        for ground in ('ground', 'panel'):
            assert contrast(found[name], found[ground]) >= 4.5, (name, ground)
    # The timeline is painted, not styled: its ground must follow.
    assert pixel(page, *place(page, 2 * STEP + 800, 2)) == found['ground']
    page.prefer('light' if scheme == 'dark' else 'dark')  # the system changes while the page is open
    settle(page)
    other = colours(page)
    assert (luminance(other['ground']) < 0.1) is (scheme == 'light')
    assert pixel(page, *place(page, 2 * STEP + 800, 2)) == other['ground']
    page.js("document.getElementById('theme').click()")  # and back by hand
    settle(page)
    assert colours(page) == found
    assert pixel(page, *place(page, 2 * STEP + 800, 2)) == found['ground']
