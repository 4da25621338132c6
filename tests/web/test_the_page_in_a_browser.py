# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lens_auto.report import page as page_module
from lens_auto.report.folder import load
from tests.unit.report.planted import BEGIN, MS, Plant, synchronous
from tests.unit.report.test_requests_of_engines import engine, line, read
from tests.unit.report.test_the_system_by_phase_process_and_gpu import planted
from tests.web.chromium import PROGRAM, Page

pytestmark = pytest.mark.skipif(not PROGRAM, reason='no Chromium on this machine')

EVIL = '</script><script>window.pwned=1</script><img src=x onerror="window.pwned=2">'


def _plant() -> Plant:
    plant = synchronous(steps=8)
    for worker in range(1, 4):
        plant.process(worker, lens__role='worker', ray__actor__class='Gen<b>')
        for step in range(8):
            begin = BEGIN + step * 1002 * MS + 30 * MS
            plant.span(worker, 'rl.grpo.generate', begin, begin + (300 + 40 * worker) * MS)
    plant.span(1, EVIL, BEGIN, BEGIN + 5 * MS, error=True)
    return plant


@pytest.fixture(scope='module')
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp('run')
    path = folder / 'report.html'
    path.write_text(page_module.render(_plant().run(folder)), encoding='utf-8')
    return path.as_uri()


@pytest.fixture
def page(browser: Page, url: str) -> Page:
    browser.requests.clear()
    browser.complaints.clear()
    browser.go(url)
    return browser


def _canvas(page: Page) -> tuple[float, float]:
    """The middle of the timeline in the window."""
    page.js("document.getElementById('view').scrollIntoView()")
    box: dict[str, float] = page.js(
        "(() => { const b = document.getElementById('view').getBoundingClientRect();"
        ' return {x: b.x, y: b.y, w: b.width, h: b.height}; })()'
    )
    return box['x'] + 170 + (box['w'] - 170) / 2, box['y'] + 40


def _view(page: Page) -> tuple[float, float]:
    found: list[float] = page.js('[lensReport.view.from, lensReport.view.to]')
    return found[0], found[1]


def _settle(page: Page) -> None:
    page.js('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')


def test_it_loads_without_a_complaint_and_asks_nobody_for_anything(page: Page, url: str) -> None:
    assert page.js('lensReport.count') == len(load(str(Path(url.removeprefix('file://')).parent)).tree.rows)
    assert page.complaints == []
    assert [one for one in page.requests if one not in (url, 'about:blank')] == []
    assert page.js('document.querySelectorAll("#bars g").length') == 8


def test_nothing_of_a_run_is_executed(page: Page) -> None:
    assert page.js('window.pwned') is None
    assert page.js('document.querySelectorAll("img, b + script").length') == 0
    # It is there, as text.
    assert EVIL in page.js("document.getElementById('phase-table').textContent")


def test_the_wheel_and_the_keys_zoom_and_pan(page: Page) -> None:
    x, y = _canvas(page)
    low, high = _view(page)
    page.wheel(x, y, -400)
    _settle(page)
    nearer = _view(page)
    assert nearer[1] - nearer[0] < 0.6 * (high - low)
    page.js("document.getElementById('view').focus()")
    page.key('ArrowRight')
    _settle(page)
    assert _view(page)[0] > nearer[0]
    page.key('0')
    _settle(page)
    assert _view(page)[1] - _view(page)[0] >= high - low
    assert page.complaints == []


def test_dragging_moves_the_time(page: Page) -> None:
    x, y = _canvas(page)
    page.wheel(x, y, -800)
    _settle(page)
    before = _view(page)
    page.mouse('mousePressed', x, y)
    page.mouse('mouseMoved', x - 120, y)
    page.mouse('mouseReleased', x - 120, y)
    _settle(page)
    assert _view(page)[0] > before[0]


def test_search_finds_by_name_and_goes_to_the_next(page: Page) -> None:
    page.key('/')
    page.type('policy_update')
    _settle(page)
    assert page.js("document.getElementById('found').textContent") == '8 found'
    page.key('Enter')
    _settle(page)
    assert page.js("document.getElementById('found').textContent") == '1 of 8'
    assert 'rl.grpo.step > rl.grpo.policy_update' in page.js("document.getElementById('selected').textContent")


def test_a_link_to_a_step_shows_it_with_its_critical_path(page: Page, url: str) -> None:
    page.go(url + '#step=5')
    text: str = page.js("document.getElementById('path').textContent")
    assert text.startswith('Critical path of step 5, 1.00 s') and 'rl.grpo.generate' in text
    low, high = _view(page)
    assert low < 4 * 1002_000 < 5 * 1002_000 < high < 6 * 1002_000


def test_a_click_selects_a_span_and_its_link_leads_back_to_it(page: Page, url: str) -> None:
    page.js("document.getElementById('view').focus()")
    x, y = _canvas(page)
    page.mouse('mousePressed', x, y)
    page.mouse('mouseReleased', x, y)
    _settle(page)
    chosen = page.js('lensReport.chosen()')
    link: str = page.js('location.hash')
    assert chosen >= 0 and link.startswith('#span=')
    page.go(url + link)
    assert page.js('lensReport.chosen()') == chosen


def test_requests_of_engines_and_spans_that_overlap_read_sensibly(tmp_path: Path) -> None:
    plant = synchronous(steps=4, rollouts=[450.0] * 64)
    plant.write(tmp_path)
    read(tmp_path, line(1, engine([1.0, 3.0], [1.0, 1.0], [2.0, 2.0])))
    path = tmp_path / 'report.html'
    path.write_text(page_module.render(load(str(tmp_path))), encoding='utf-8')
    page = Page(path.as_uri())
    try:
        assert page.js("document.getElementById('request-bar').textContent").count('queue 40.0 %') == 2
        assert page.js("[...document.querySelectorAll('#request-table td')].map((td) => td.textContent)") == [
            *('all', '2', '5.00 s', '40.0 %', '20.0 %', '40.0 %', '', '', '', ''),
        ]
        phases: str = page.js("document.getElementById('phase-table').textContent")
        assert '29 x' in phases and 'x: spans that overlap' in phases
        assert page.complaints == []
    finally:
        page.close()


def test_what_the_system_said(tmp_path: Path, page: Page) -> None:
    assert page.js("document.getElementById('system').hidden")  # of a run in which nobody asked it
    path = tmp_path / 'report.html'
    path.write_text(page_module.render(planted(tmp_path)), encoding='utf-8')
    other = Page(path.as_uri())
    try:
        rows: list[str] = other.js("[...document.querySelectorAll('#system-tables tr')].map((tr) => tr.innerText)")
        said = [row.split('\t') for row in rows]
        assert [row[:6] for row in said if row[0] == 'training'] == [
            ['training', '75.0 %', '80.0 %', '30.0 %', '130 GB', '1220 W']
        ]
        assert {row[0] for row in said} >= {'node0 gpu 0', 'node0 gpu 1', 'driver', 'worker 1001'}
        assert other.complaints == []
    finally:
        other.close()


def test_without_an_engine_the_page_has_no_requests(page: Page) -> None:
    assert page.js("document.getElementById('requests').hidden")
    assert 'x: spans that overlap' not in page.js("document.getElementById('phase-table').textContent")


def test_dark_and_light_differ_and_can_be_chosen(page: Page) -> None:
    def ground() -> Any:
        return page.js('getComputedStyle(document.body).backgroundColor')

    before = ground()
    page.js("document.getElementById('theme').click()")
    assert ground() != before
    assert page.complaints == []


def test_a_hundred_thousand_spans_are_drawn_in_part_and_can_be_zoomed(tmp_path: Path) -> None:
    plant = Plant()
    for process in range(20):
        plant.process(process, lens__role='worker', ray__actor__class='Gen')
        for number in range(5000):
            begin = BEGIN + number * 10 * MS
            plant.span(process, 'rl.grpo.rollout', begin, begin + 9 * MS)
    path = tmp_path / 'report.html'
    path.write_text(page_module.render(plant.run(tmp_path)), encoding='utf-8')
    page = Page(path.as_uri())
    try:
        assert page.js('lensReport.count') == 100_000
        # As many rectangles as there are pixels, not as there are spans.
        assert 0 < page.js('lensReport.drawn') < 40_000
        x, y = _canvas(page)
        for _ in range(5):
            page.wheel(x, y, -500)
            _settle(page)
        assert _view(page)[1] - _view(page)[0] < 0.1 * 50_000_000
        assert page.complaints == []
    finally:
        page.close()
