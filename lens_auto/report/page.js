// SPDX-License-Identifier: Apache-2.0
// The page of lens-report. No library: a canvas for the timeline, SVG for the rest, and text set as text alone.
'use strict';
(() => {
  const $ = (id) => document.getElementById(id);
  const run = JSON.parse($('data').textContent);
  const bytes = (text) => {
    const raw = atob(text), made = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) made[i] = raw.charCodeAt(i);
    return made.buffer;
  };
  const S = run.spans, count = S.count;
  const start = new Float64Array(bytes(S.start)), length = new Float64Array(bytes(S.length));
  const name = new Uint32Array(bytes(S.name)), process = new Uint16Array(bytes(S.process));
  const line = new Uint16Array(bytes(S.line)), kind = new Uint8Array(bytes(S.kind));
  const flags = new Uint8Array(bytes(S.flags)), parent = new Int32Array(bytes(S.parent));
  const ids = new BigUint64Array(bytes(S.id));
  const ERROR = 1, TRUNCATED = 2, OPEN = 8, WAIT = 128;
  // Okabe and Ito's colours, told apart by people of any colour vision; kinds also have patterns and names.
  const COLOURS = { generation: '#56B4E9', training: '#009E73', logprob: '#E69F00', reward: '#CC79A7', refit: '#D55E00',
    wait: '#B8BEC5', data: '#F0E442', advantage: '#8FA8D6', checkpoint: '#A6761D', evaluation: '#7FC9A4',
    setup: '#C9B8E8', job: '#DDE2E7', other: '#CBD2D9' };
  const PATTERN = { training: 45, reward: 90, refit: 135, wait: 0, checkpoint: 60, logprob: 120 };
  const STACK = ['generation', 'training', 'logprob', 'reward', 'refit', 'wait', 'data', 'advantage', 'checkpoint',
    'evaluation', 'setup', 'job', 'other'];
  const el = (tag, text, cls) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (cls) made.className = cls;
    return made;
  };
  const svg = (tag, attributes, text) => {
    const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const digits = (x) => x < 10 ? x.toFixed(2) : x < 100 ? x.toFixed(1) : x.toFixed(0);
  const time = (us) => {
    const a = Math.abs(us);
    const parts = (n, one, other) => `${Math.floor(n / 60)} ${one} ${String(n % 60).padStart(2, '0')} ${other}`;
    if (a >= 3599.5e6) return parts(Math.round(us / 60e6), 'h', 'm');
    if (a >= 60e6) return parts(Math.round(us / 1e6), 'm', 's');
    return a >= 1e6 ? digits(us / 1e6) + ' s' : a >= 1e3 ? digits(us / 1e3) + ' ms' : digits(us) + ' us';
  };
  // Ticks a millisecond apart need more digits than a duration.
  const axis = (us, tick) => (us / 1e6).toFixed(Math.max(0, Math.min(6, 6 - Math.floor(Math.log10(tick))))) + ' s';
  const percent = (part) => (100 * part).toFixed(1) + ' %';
  // More than all of the steps' time is of spans that overlap.
  const AT_ONCE = 1.05, ofStep = (share) => share < AT_ONCE ? percent(share) : `${+share.toFixed(share < 10 ? 1 : 0)} x`;

  // ---- head, verdicts, goodput ----
  $('title').textContent = `${run.name}  ${run.took}  ${run.spans_total.toLocaleString('en')} spans` + (run.live ? '  (live)' : '');
  for (const one of run.verdicts) {
    const box = el('div', undefined, 'verdict' + (one.name === 'healthy' || one.name === 'no steps' ? ' fine' : ''));
    box.append(el('b', one.name), el('div', one.why), el('div', 'look at: ' + one.next, 'dim'));
    if (one.doubt) box.append(el('div', 'doubt: ' + one.doubt, 'dim'));
    $('verdict').append(box);
  }
  for (const one of run.stragglers) {
    $('verdict').append(el('div', `${one.process} is slow in ${one.name}: ${time(one.mean / 1e3)}, its peers ` +
      `${time(one.median / 1e3)}; ${percent(one.share)} of the steps`));
  }
  const ACCOUNT = { productive: '#009E73', overhead: '#56B4E9', idle: '#E69F00', wasted: '#D55E00', unaccounted: '#CBD2D9' };
  // A bar of named shares; the names once more below, where a part is too narrow for its own.
  const stacked = (colours, shares) => {
    const shown = Object.keys(colours).filter((name) => shares[name] >= 0.0005), bar = el('div', undefined, 'stack');
    for (const name of shown) {
      const part = el('div', `${name} ${percent(shares[name])}`);
      part.style.width = 100 * shares[name] + '%';
      part.style.background = colours[name];
      part.title = part.textContent;
      bar.append(part);
    }
    return [bar, el('div', shown.map((name) => `${name} ${percent(shares[name])}`).join('   '), 'dim')];
  };
  if (Object.keys(run.goodput).length) $('goodput').append(el('h2', 'Goodput of the steps'), ...stacked(ACCOUNT, run.goodput));

  // ---- timeline ----
  const canvas = $('view'), pen = canvas.getContext('2d');
  const HEIGHT = 16, HEAD = 22, GAP = 18, LEFT = 170;
  const shown = run.processes.map((_, n) => n).filter((n) => S.lines[n] > 0 && !run.processes[n].launcher);
  const offset = new Array(run.processes.length).fill(-1);
  let tall = 0;
  for (const n of shown) { offset[n] = tall; tall += S.lines[n] * HEIGHT + GAP; }
  // Spans by line, each sorted by start (rows are): what is visible is found with a binary search.
  const tracks = new Map();
  for (let n = 0; n < count; n++) {
    if (offset[process[n]] < 0) continue;
    const key = process[n] * 65536 + line[n];
    let list = tracks.get(key);
    if (!list) tracks.set(key, list = []);
    list.push(n);
  }
  const ordered = [...tracks].map(([key, list]) => ({
    y: offset[Math.floor(key / 65536)] + (key % 65536) * HEIGHT, rows: Int32Array.from(list) }));
  let whole = 1;
  for (let n = 0; n < count; n++) whole = Math.max(whole, start[n] + length[n]);
  const view = { from: 0, to: whole, top: 0 };
  let chosen = -1, matches = [], isMatch = new Uint8Array(count), at = -1, onPath = new Uint8Array(count), pathOf = null;
  let wide = 0, high = 0, asked = false;
  const stats = window.lensReport = { frames: 0, drawn: 0, last: 0, firstPaint: 0, view, count, chosen: () => chosen };
  const css = (key) => getComputedStyle(document.documentElement).getPropertyValue(key).trim();
  const ask = () => { if (!asked) { asked = true; requestAnimationFrame(draw); } };

  function size() {
    const ratio = window.devicePixelRatio || 1;
    wide = canvas.clientWidth;
    high = Math.max(160, Math.min(tall + HEAD + 8, Math.round(window.innerHeight * 0.6)));
    canvas.style.height = high + 'px';
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round(high * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    ask();
  }
  function firstVisible(rows, from) {
    let low = 0, up = rows.length;
    while (low < up) {
      const middle = (low + up) >> 1;
      // In a line spans do not overlap: sorted by start they are sorted by end.
      if (start[rows[middle]] + length[rows[middle]] < from) low = middle + 1; else up = middle;
    }
    return low;
  }
  function draw() {
    asked = false;
    const begun = performance.now();
    const ink = css('--ink'), soft = css('--soft'), ground = css('--ground'), panel = css('--panel'), rule = css('--line');
    const scale = (wide - LEFT) / (view.to - view.from);
    let drawn = 0;
    pen.fillStyle = ground;
    pen.fillRect(0, 0, wide, high);
    pen.font = '11px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, HEAD, wide - LEFT, high - HEAD);
    pen.clip();
    const labels = [];
    for (const { y, rows } of ordered) {
      const top = HEAD + y - view.top;
      if (top > high || top + HEIGHT < HEAD) continue;
      let edge = -1;
      for (let i = firstVisible(rows, view.from); i < rows.length; i++) {
        const n = rows[i];
        if (start[n] > view.to) break;
        const x = LEFT + (start[n] - view.from) * scale, right = x + Math.max(1, length[n] * scale);
        const marked = n === chosen || isMatch[n] || onPath[n];
        // Narrower than what is drawn there already: it would not be seen.
        if (right <= edge + 0.6 && !marked) continue;
        const left = Math.max(x, LEFT - 2), width = Math.min(right, wide + 2) - left;
        pen.fillStyle = COLOURS[run.kinds[kind[n]]] || COLOURS.other;
        pen.globalAlpha = matches.length && !isMatch[n] && n !== chosen ? 0.25 : 1;
        pen.fillRect(left, top + 1, Math.max(width - (width > 3 ? 0.7 : 0), 0.8), HEIGHT - 2);
        if (width > 6 && flags[n] & WAIT) { hatch(left, top + 1, width, HEIGHT - 2, soft); }
        if (flags[n] & (ERROR | TRUNCATED | OPEN)) {
          pen.fillStyle = '#B3261E';
          pen.fillRect(left, top + HEIGHT - 4, Math.max(width, 2), 3);
        }
        pen.globalAlpha = 1;
        if (onPath[n]) { pen.strokeStyle = ink; pen.lineWidth = 1.5; pen.strokeRect(left + 0.5, top + 1, Math.max(width - 1, 1), HEIGHT - 2); }
        if (n === chosen) { pen.strokeStyle = '#D500F9'; pen.lineWidth = 2.5; pen.strokeRect(left, top + 1, Math.max(width, 3), HEIGHT - 2); }
        if (width > 34) labels.push([n, left, top, width]);
        edge = right;
        drawn++;
      }
    }
    pen.fillStyle = '#111';
    for (const [n, left, top, width] of labels) {
      const room = Math.floor((width - 6) / 6), text = run.names[name[n]];
      pen.fillText(text.length > room ? text.slice(0, Math.max(1, room - 1)) + '…' : text, left + 3, top + HEIGHT / 2 + 0.5);
    }
    if (pathOf) for (const [n, from, to] of pathOf.path) {
      const top = HEAD + offset[process[n]] + line[n] * HEIGHT - view.top;
      if (offset[process[n]] < 0) continue;
      pen.fillStyle = '#D500F9';
      pen.fillRect(LEFT + (from - view.from) * scale, top + HEIGHT - 3, Math.max(1, (to - from) * scale), 3);
    }
    pen.restore();
    // Axis and names lie over it.
    pen.fillStyle = panel;
    pen.fillRect(0, 0, wide, HEAD);
    pen.fillRect(0, 0, LEFT - 2, high);
    pen.strokeStyle = rule;
    pen.fillStyle = soft;
    const span = view.to - view.from, raw = span / 8, power = Math.pow(10, Math.floor(Math.log10(raw)));
    const tick = power * (raw / power > 5 ? 10 : raw / power > 2 ? 5 : raw / power > 1 ? 2 : 1);
    for (let t = Math.ceil(view.from / tick) * tick; t < view.to; t += tick) {
      const x = LEFT + (t - view.from) * scale;
      pen.fillText(axis(t, tick), x + 3, HEAD / 2);
      pen.beginPath(); pen.moveTo(x, 0); pen.lineTo(x, HEAD); pen.stroke();
    }
    for (const n of shown) {
      const top = HEAD + offset[n] - view.top;
      if (top > high || top + S.lines[n] * HEIGHT + GAP < HEAD) continue;
      pen.fillStyle = ink;
      const label = run.processes[n].label;
      if (top + 8 > HEAD) pen.fillText(label.length > 26 ? label.slice(0, 25) + '…' : label, 6, top + HEIGHT / 2);
      pen.beginPath(); pen.moveTo(0, top - GAP / 2); pen.lineTo(wide, top - GAP / 2); pen.stroke();
    }
    stats.frames++;
    stats.drawn = drawn;
    stats.last = performance.now() - begun;
    if (!stats.firstPaint) stats.firstPaint = performance.now();
  }
  function hatch(x, y, width, height, colour) {
    pen.save(); pen.beginPath(); pen.rect(x, y, width, height); pen.clip();
    pen.strokeStyle = colour; pen.lineWidth = 1; pen.beginPath();
    for (let i = x - height; i < x + width; i += 6) { pen.moveTo(i, y + height); pen.lineTo(i + height, y); }
    pen.stroke(); pen.restore();
  }
  function bound() {
    const least = 1, span = Math.min(Math.max(view.to - view.from, least), whole * 1.02);
    view.from = Math.min(Math.max(view.from, -whole * 0.01), whole * 1.01 - span);
    view.to = view.from + span;
    view.top = Math.min(Math.max(view.top, 0), Math.max(0, tall + HEAD - high));
    ask();
  }
  function zoom(factor, x) {
    const part = x === undefined ? 0.5 : Math.min(1, Math.max(0, (x - LEFT) / (wide - LEFT)));
    const here = view.from + part * (view.to - view.from), span = Math.min(whole * 1.02, (view.to - view.from) * factor);
    view.from = here - part * span; view.to = view.from + span; bound();
  }
  function pan(part) { const by = part * (view.to - view.from); view.from += by; view.to += by; bound(); }
  function show(from, to) { const room = (to - from) * 0.05 || 1; view.from = from - room; view.to = to + room; bound(); }
  function reveal(n) {
    const top = offset[process[n]] + line[n] * HEIGHT;
    if (top < view.top || top > view.top + high - HEAD - HEIGHT * 2) view.top = top - 40;
    const span = view.to - view.from;
    if (start[n] < view.from || start[n] + length[n] > view.to || length[n] < span / 400) {
      show(start[n] - length[n], start[n] + 2 * length[n]);
    }
    bound();
  }
  const times = (n) => `${time(length[n])}  at +${time(start[n])}`;
  const state = (n) => [[flags[n] & ERROR, 'failed'], [flags[n] & TRUNCATED, 'cut short by the end of its process'], [flags[n] & OPEN, 'still open'],
    [flags[n] & WAIT, 'a wait'], [onPath[n], 'on the critical path']].filter((one) => one[0]).map((one) => one[1]).join(', ');
  function choose(n, follow) {
    chosen = n;
    if (n < 0) { $('selected').textContent = ''; ask(); return; }
    const chain = [];
    for (let up = n, i = 0; up >= 0 && i < 40; up = parent[up], i++) chain.unshift(run.names[name[up]]);
    $('selected').textContent = `${chain.join(' > ')}\n${run.processes[process[n]].label}  ${times(n)}  ${state(n)}`.trimEnd();
    if (follow) reveal(n);
    const link = '#span=' + ids[n].toString(16).padStart(16, '0');
    if (location.hash !== link) history.replaceState(null, '', link);
    ask();
  }
  function spanAt(x, y) {
    if (x < LEFT || y < HEAD) return -1;
    const t = view.from + (x - LEFT) / (wide - LEFT) * (view.to - view.from), slack = 2 * (view.to - view.from) / wide;
    for (const track of ordered) {
      const top = HEAD + track.y - view.top;
      if (y < top || y >= top + HEIGHT) continue;
      const i = firstVisible(track.rows, t - slack), n = track.rows[i];
      if (n !== undefined && start[n] <= t + slack) return n;
    }
    return -1;
  }
  const tip = $('tip');
  function hover(event) {
    const n = event ? spanAt(event.offsetX, event.offsetY) : -1;
    tip.hidden = n < 0;
    if (n < 0) return;
    tip.replaceChildren(el('b', run.names[name[n]]), el('div', times(n)), el('div', run.processes[process[n]].label));
    if (state(n)) tip.append(el('div', state(n)));
    // Beside the pointer, and inside the window.
    const box = tip.getBoundingClientRect(), below = event.clientY + 16;
    tip.style.left = Math.max(0, Math.min(event.clientX + 12, window.innerWidth - box.width - 4)) + 'px';
    tip.style.top = (below + box.height > window.innerHeight ? event.clientY - box.height - 8 : below) + 'px';
  }
  canvas.addEventListener('pointerleave', () => hover(null));
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    hover(null);
    if (event.shiftKey) { view.top += event.deltaY; bound(); }
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / wide);
    else zoom(Math.exp(event.deltaY * 0.002), event.offsetX);
  }, { passive: false });
  let drag = null;
  canvas.addEventListener('pointerdown', (event) => { drag = { x: event.offsetX, y: event.offsetY, moved: 0 }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener('pointermove', (event) => {
    hover(drag ? null : event);
    if (!drag) return;
    const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
    drag.moved += Math.abs(dx) + Math.abs(dy);
    drag.x = event.offsetX; drag.y = event.offsetY;
    const by = -dx / (wide - LEFT) * (view.to - view.from);
    view.from += by; view.to += by; view.top -= dy; bound();
  });
  canvas.addEventListener('pointerup', (event) => {
    if (drag && drag.moved < 4) choose(spanAt(event.offsetX, event.offsetY));
    drag = null;
  });
  canvas.addEventListener('keydown', (event) => {
    const keys = { '+': () => zoom(0.7), '=': () => zoom(0.7), w: () => zoom(0.7), '-': () => zoom(1.4), s: () => zoom(1.4),
      ArrowLeft: () => pan(-0.15), a: () => pan(-0.15), ArrowRight: () => pan(0.15), d: () => pan(0.15),
      ArrowUp: () => { view.top -= 40; bound(); }, ArrowDown: () => { view.top += 40; bound(); },
      0: () => show(0, whole), Home: () => show(0, whole), n: next, Enter: next, Escape: clear };
    const act = keys[event.key];
    if (act && !event.ctrlKey && !event.metaKey) { event.preventDefault(); act(); }
  });
  function search() {
    const text = $('search').value.trim().toLowerCase();
    isMatch.fill(0); matches = []; at = -1;
    if (text) {
      const named = run.names.map((one) => one.toLowerCase().includes(text));
      const labelled = run.processes.map((one) => one.label.toLowerCase().includes(text));
      for (let n = 0; n < count; n++) {
        if (offset[process[n]] >= 0 && (named[name[n]] || labelled[process[n]])) { isMatch[n] = 1; matches.push(n); }
      }
    }
    $('found').textContent = text ? `${matches.length.toLocaleString('en')} found` : '';
    ask();
  }
  function next() {
    if (!matches.length) return;
    at = (at + 1) % matches.length;
    $('found').textContent = `${at + 1} of ${matches.length.toLocaleString('en')}`;
    choose(matches[at], true);
  }
  function clear() {
    $('search').value = ''; pathOf = null; onPath.fill(0); $('path').replaceChildren();
    bars.forEach((bar) => bar.classList.remove('chosen'));
    search(); choose(-1);
    if (/^#(step|span)=/.test(location.hash)) history.replaceState(null, '', location.href.split('#')[0]);
  }
  $('search').addEventListener('input', search);
  $('search').addEventListener('keydown', (event) => { if (event.key === 'Enter') next(); if (event.key === 'Escape') clear(); });
  $('next').addEventListener('click', next);
  $('fit').addEventListener('click', () => show(0, whole));
  document.addEventListener('keydown', (event) => {
    if (event.key === '/' && document.activeElement.tagName !== 'INPUT') { event.preventDefault(); $('search').focus(); }
  });

  // ---- steps ----
  const defs = svg('svg', { width: 0, height: 0, 'aria-hidden': 'true' });
  for (const one of STACK) {
    if (PATTERN[one] === undefined) continue;
    const pattern = svg('pattern', { id: 'p-' + one, width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: `rotate(${PATTERN[one]})` });
    pattern.append(svg('rect', { width: 6, height: 6, fill: COLOURS[one] }), svg('line', { x1: 0, y1: 0, x2: 0, y2: 6, stroke: '#0007', 'stroke-width': 1.5 }));
    defs.append(pattern);
  }
  document.body.append(defs);
  const fill = (one) => PATTERN[one] === undefined ? COLOURS[one] : `url(#p-${one})`;
  const present = STACK.filter((one) => run.steps.some((step) => step.kinds[one]));
  for (const one of present) {
    const entry = el('span'), mark = svg('svg', { width: 14, height: 12 });
    mark.append(svg('rect', { width: 14, height: 12, fill: fill(one) }));
    entry.append(mark, document.createTextNode(one));
    $('legend').append(entry);
  }
  const bars = [];
  if (run.steps.length) {
    const W = 1000, H = 180, most = Math.max(...run.steps.map((step) => step.length)), each = (W - 60) / run.steps.length;
    const chart = svg('svg', { viewBox: `0 0 ${W} ${H + 20}`, width: '100%', role: 'img', 'aria-label': 'time of each step by what it was spent on' });
    for (const part of [0, 0.5, 1]) {
      chart.append(svg('line', { x1: 55, x2: W, y1: H - part * (H - 10), y2: H - part * (H - 10), stroke: 'var(--line)' }),
        svg('text', { x: 0, y: H - part * (H - 10) + 4 }, part ? time(part * most) : '0'));
    }
    run.steps.forEach((step, i) => {
      const bar = svg('g', { tabindex: 0, role: 'button', 'aria-label': `step ${step.number}, ${time(step.length)}` });
      let y = H;
      for (const one of present) {
        const tall = (step.kinds[one] || 0) / 1000 / most * (H - 10);
        if (tall < 0.05) continue;
        y -= tall;
        bar.append(svg('rect', { x: 58 + i * each, y, width: Math.max(each - (each > 4 ? 1 : 0), 0.6), height: tall, fill: fill(one) }));
      }
      bar.append(svg('title', {}, `step ${step.number}: ${time(step.length)}\n` + present.filter((one) => step.kinds[one])
        .map((one) => `${one} ${time(step.kinds[one] / 1000)}`).join('\n')));
      bar.addEventListener('click', () => chooseStep(step, true));
      bar.addEventListener('keydown', (event) => { if (event.key === 'Enter') chooseStep(step, true); });
      if (i === 0 || i === run.steps.length - 1) {
        chart.append(svg('text', { x: 58 + i * each, y: H + 15, 'text-anchor': i ? 'end' : 'start' }, 'step ' + step.number));
      }
      bars.push(bar);
      chart.append(bar);
    });
    $('bars').append(chart);
  } else $('bars').append(el('p', 'no step was recorded', 'dim'));
  function chooseStep(step, link) {
    pathOf = step; onPath.fill(0);
    const spent = new Map();
    for (const [n, from, to] of step.path) {
      onPath[n] = 1;
      const key = `${run.names[name[n]]}\t${run.processes[process[n]].label}`;
      spent.set(key, (spent.get(key) || 0) + to - from);
    }
    $('path').replaceChildren(el('h2', `Critical path of step ${step.number}, ${time(step.length)}`), table(['span', 'process', 'time', 'of step'],
      [...spent].sort((a, b) => b[1] - a[1]).slice(0, 20).map(([key, us]) => [...key.split('\t'), time(us), percent(us / step.length)])));
    bars.forEach((bar, i) => bar.firstChild && bar.classList.toggle('chosen', run.steps[i] === step));
    show(step.start, step.start + step.length);
    if (step.row >= 0) { view.top = Math.max(0, offset[process[step.row]] - 20); bound(); }
    if (link) history.replaceState(null, '', '#step=' + step.number);
  }
  function table(heads, rows) {
    const made = el('table'), head = el('tr'), body = el('tbody');
    heads.forEach((text) => head.append(el('th', text)));
    for (const row of rows) { const tr = el('tr'); row.forEach((text) => tr.append(el('td', text))); body.append(tr); }
    const thead = el('thead'); thead.append(head); made.append(thead, body);
    return made;
  }

  // ---- phases, workers, metrics, warnings ----
  $('phase-table').append(table(['span', 'count', 'total', 'own', 'mean', 'p50', 'p95', 'of step', 'bucket'], run.phases.map((one) => [
    '\u00a0'.repeat(3 * (one.path.length - 1)) + one.path[one.path.length - 1], one.count.toLocaleString('en'), time(one.total / 1e3), time(one.own / 1e3),
    time(one.mean / 1e3), time(one.p50 / 1e3), time(one.p95 / 1e3), one.share === null ? '' : ofStep(one.share), one.bucket])));
  if (run.phases.some((one) => one.share >= AT_ONCE)) $('phase-table').append(el('p', 'x: spans that overlap; so many were open at once, on average over the steps', 'dim'));
  const maybe = (ns) => ns === null ? '' : time(ns / 1e3);
  if (run.requests.length) {
    $('request-bar').append(...stacked({ queue: '#E69F00', prefill: '#56B4E9', decode: '#009E73' }, run.requests[0].shares));
    $('request-table').append(table(['of', 'requests', 'mean', 'queue', 'prefill', 'decode', 'first token', 'p95', 'a token', 'p95'], run.requests.map((one) => [
      one.of, one.count.toLocaleString('en'), time(one.mean / 1e3), ...['queue', 'prefill', 'decode'].map((part) => percent(one.shares[part])),
      maybe(one.first), maybe(one.first_p95), maybe(one.token), maybe(one.token_p95)])));
  } else $('requests').hidden = true;
  const heat = run.heat;
  if (heat.rows.length) {
    const made = table(['process', ...heat.columns], heat.rows.map((row) => [row.label, ...row.cells.map((ms) => ms === null ? '' : time(ms * 1e3))]));
    heat.columns.forEach((_, c) => {
      const values = heat.rows.map((row) => row.cells[c]).filter((ms) => ms !== null).sort((a, b) => a - b);
      const middle = values[Math.floor((values.length - 1) / 2)];
      heat.rows.forEach((row, r) => {
        if (row.cells[c] === null || values.length < 2) return;
        const over = row.cells[c] / middle - 1, cell = made.tBodies[0].rows[r].cells[c + 1];
        cell.style.background = `rgba(var(--heat), ${Math.max(0, Math.min(0.85, over))})`;
        cell.title = `${over >= 0 ? '+' : ''}${(100 * over).toFixed(0)} % against the median of ${values.length}`;
        if (over > 0.05) cell.textContent += over > 0.5 ? ' !!!' : over > 0.2 ? ' !!' : ' !';
      });
    });
    $('heat').append(made, el('p', '! more than 5 %, !! 20 %, !!! 50 % above the median of the column', 'dim'));
  }
  const used = run.system, share = (part) => part === null ? '' : percent(part), rounded = (x, unit) => x === null ? '' : x.toFixed(0) + unit;
  const sized = (count) => {
    if (count === null) return '';
    const step = count < 1e3 ? 0 : Math.min(4, Math.floor(Math.log10(count) / 3));
    return (count / 1000 ** step).toPrecision(3) + ' ' + ['B', 'kB', 'MB', 'GB', 'TB'][step];
  };
  const ofGpus = (items) => used.gpus.length ? items : [];
  if (used.phases.length) $('system-tables').append(table(['while', 'run cpu', 'node cpu', ...ofGpus(['gpu', 'gpu memory', 'power']), 'samples'], used.phases.map((one) => [
    one.phase, share(one.cpu), share(one.node_cpu), ...ofGpus([share(one.gpu), sized(one.gpu_memory), rounded(one.power, ' W')]), one.samples])));
  if (used.gpus.length) $('system-tables').append(table(['gpu', 'used', 'memory', 'of', 'power', 'hottest'], used.gpus.map((one) => [
    one.gpu, share(one.used), sized(one.memory_most), sized(one.memory_limit), rounded(one.power, ' W'), rounded(one.temperature, ' C')])));
  if (used.processes.length) $('system-tables').append(table(['process', 'cpu', 'most', 'memory at first', 'most', 'threads'], used.processes.map((one) => [
    one.process, share(one.cpu), share(one.cpu_most), sized(one.memory_first), sized(one.memory_most), one.threads])));
  else $('system').hidden = true;
  const short = (x) => x === null ? 'NaN' : Math.abs(x) >= 1e5 || (x && Math.abs(x) < 1e-3) ? x.toExponential(2) : String(+x.toPrecision(4));
  for (const one of run.metrics) {
    const box = el('figure'), values = one.v.filter((x) => x !== null);
    box.append(el('figcaption', `${one.name}  ${short(one.first)} → ${short(one.last)} ${one.unit}` + (one.best === null ? '' : `  best ${short(one.best)}`)));
    if (values.length > 1) {
      const low = Math.min(...values), top = Math.max(...values), first = one.t[0], last = one.t[one.t.length - 1];
      const chart = svg('svg', { viewBox: '0 0 260 90', width: '100%', role: 'img', 'aria-label': `course of ${one.name}` });
      const x = (i) => (2 + 256 * (one.t[i] - first) / (last - first || 1)).toFixed(1), y = (v) => (84 - 78 * (top > low ? (v - low) / (top - low) : 0.5)).toFixed(1);
      // What is no number is a gap; `h0` makes a dot of a point between two gaps.
      const course = one.v.map((v, i) => v === null ? '' : i && one.v[i - 1] !== null ? `L${x(i)},${y(v)}` : `M${x(i)},${y(v)}h0`).join('');
      chart.append(svg('path', { d: course, fill: 'none', stroke: 'var(--accent)', 'stroke-width': 1.5, 'stroke-linecap': 'round' }),
        svg('text', { x: 2, y: 10 }, short(top)), svg('text', { x: 2, y: 88 }, short(low)));
      box.append(chart);
    }
    $('curves').append(box);
  }
  if (!run.metrics.length) $('curves').append(el('p', 'no metric was recorded', 'dim'));
  for (const one of run.warnings) $('warning-list').append(el('li', one));
  if (!run.warnings.length) $('warnings').hidden = true;

  // ---- theme, deep links, start ----
  const theme = (dark) => { document.documentElement.dataset.theme = dark ? 'dark' : 'light'; ask(); };
  const media = window.matchMedia('(prefers-color-scheme: dark)');
  theme(media.matches);
  media.addEventListener('change', (event) => theme(event.matches));
  $('theme').addEventListener('click', () => theme(document.documentElement.dataset.theme !== 'dark'));
  function follow() {
    const step = /^#step=(\d+)$/.exec(location.hash), span = /^#span=([0-9a-f]{16})$/.exec(location.hash);
    if (step) { const found = run.steps.find((one) => one.number === +step[1]); if (found) chooseStep(found, false); }
    if (span) { const wanted = BigInt('0x' + span[1]); for (let n = 0; n < count; n++) if (ids[n] === wanted) { choose(n, true); break; } }
    if (step || span) $('timeline').scrollIntoView();
  }
  window.addEventListener('resize', size);
  window.addEventListener('hashchange', follow);
  size();
  follow();
})();
