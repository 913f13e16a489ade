// Drawings in SVG, each with its numbers in a table below.
const shapes = ["circle", "square", "triangle", "diamond", "wedge", "pentagon", "cross"];
const colors = 6;
const series = (at) => ({ color: "s" + (at % colors), shape: shapes[at % shapes.length] });

function marker(shape, x, y, r) {
  const polygon = (angles) => svg("polygon", { class: "marker", points: angles.map((a) => [x + 1.25 * r * Math.sin(a), y - 1.25 * r * Math.cos(a)].map((v) => v.toFixed(1)).join(",")).join(" ") });
  const turn = (corners, start) => Array.from({ length: corners }, (_, i) => start + (2 * Math.PI * i) / corners);
  if (shape === "circle") return svg("circle", { class: "marker", cx: x.toFixed(1), cy: y.toFixed(1), r });
  if (shape === "square") return polygon(turn(4, Math.PI / 4));
  if (shape === "diamond") return polygon(turn(4, 0));
  if (shape === "triangle") return polygon(turn(3, 0));
  if (shape === "wedge") return polygon(turn(3, Math.PI));
  if (shape === "pentagon") return polygon(turn(5, 0));
  return svg("path", { class: "marker line", d: `M${x - r},${y - r}L${x + r},${y + r}M${x - r},${y + r}L${x + r},${y - r}` });
}
const swatch = (style) => svg("svg", { class: "swatch " + style.color, viewBox: "0 0 12 12", "aria-hidden": "true" }, marker(style.shape, 6, 6, 4));

function niceTicks(low, high, most) {
  const span = high - low || Math.abs(high) || 1;
  const power = 10 ** Math.floor(Math.log10(span / most));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => span / size <= most) || 10 * power;
  const found = [];
  for (let at = Math.floor(low / step + 1e-9); at <= Math.ceil(high / step - 1e-9); at += 1) found.push(Number((at * step).toPrecision(12)));
  return found.length > 1 ? found : [found[0], found[0] + step];
}
const digitsOf = (ticks) => Math.min(4, Math.max(0, ...ticks.map((tick) => (String(tick).split(".")[1] || "").length)));
const linear = (from, to, start, end) => (value) => start + ((value - from) / (to - from || 1)) * (end - start);
function widthOf(text, size) { return [...text].reduce((sum, c) => sum + (c.charCodeAt(0) > 0x2e7f ? 1 : 0.56), 0) * size; }
function cut(text, width, size) {
  let chars = [...text];
  if (widthOf(text, size) <= width) return text;
  while (chars.length && widthOf(chars.join("") + "…", size) > width) chars = chars.slice(0, -1);
  return chars.join("").trimEnd() + "…";
}
// As wide as the screen allows: text keeps its size on a phone.
function canvasWidth(most) { return Math.max(300, Math.min(most, document.documentElement.clientWidth - 40)); }
function frame(width, height, title, ...inner) {
  return svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title + ". " + t("chart.desc") }, svg("title", {}, title), inner);
}
function axisY(ticks, y, left, right) {
  const digits = digitsOf(ticks);
  return ticks.map((tick) => [svg("line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) }), svg("text", { class: "tick", x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, number(tick, digits))]);
}
// Labels that would cover a point or another label are left out: the table below has them.
function labels(points, left, right, boxes) {
  const taken = [...boxes];
  const overlaps = (a) => taken.some((b) => a[0] < b[2] && a[2] > b[0] && a[1] < b[3] && a[3] > b[1]);
  const made = [];
  for (const point of points) {
    const text = cut(point.label, 190, 11), wide = widthOf(text, 11);
    for (const [dx, dy, anchor] of [[8, 4, "start"], [-8, 4, "end"], [0, -9, "middle"], [0, 17, "middle"]]) {
      const start = point.x + dx - (anchor === "end" ? wide : anchor === "middle" ? wide / 2 : 0);
      const box = [start, point.y + dy - 10, start + wide, point.y + dy + 3];
      if (box[0] < left || box[2] > right || box[1] < 4 || overlaps(box)) continue;
      taken.push(box);
      made.push(svg("text", { class: "halo direct", x: (point.x + dx).toFixed(1), y: (point.y + dy).toFixed(1), "text-anchor": anchor }, text));
      break;
    }
  }
  return made;
}
function numbersTable(title, heads, rows) {
  const table = el("table", { class: "numbers" }, caption(title), el("thead", {}, el("tr", {}, heads.map((head, at) => el("th", { scope: "col", class: at ? "num" : "" }, head)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, at) => el(at ? "td" : "th", { class: at ? "num" : "", scope: at ? null : "row" }, cell))))));
  return el("details", { open: true }, el("summary", {}, t("chart.table")), scroller(title, table));
}

const mostCurves = 8;
function curveSystems(c) {
  const here = new Set(data.conditions.flatMap((condition) => c.rowsAt(condition).map((row) => row.system.id)));
  const wanted = picks().filter((id) => here.has(id)).slice(0, mostCurves);
  return wanted.length ? wanted : ordered(c, c.rows.filter(inOrder)).slice(0, 5).map((row) => row.system.id);
}
function curvesView(c) {
  const ids = curveSystems(c);
  const points = c.conditions.map((condition) => new Map(c.rowsAt(condition).filter((row) => row.score).map((row) => [row.system.id, row])));
  const all = ids.flatMap((id) => points.flatMap((at) => { const s = at.get(id)?.score; return s ? [s.value, s.low ?? s.value, s.high ?? s.value] : []; }));
  const title = t("curves.title", { metric: metricName(c.metric) });
  const candidates = ordered(c, c.rows).filter((row) => !ids.includes(row.system.id));
  const legend = el("ul", { class: "legend" }, ids.map((id, at) => { const system = data.systems[systemAt.get(id)]; return el("li", {}, swatch(series(at)), systemLink(system), " ",
    el("button", { type: "button", class: "quiet", "aria-label": t("remove", { name: system.name }), on: { click: () => change({ pick: ids.filter((one) => one !== id).join(",") }) } }, "×")); }));
  const adder = ids.length < mostCurves && candidates.length > 0 && el("label", { class: "field" }, t("add"), el("select", { "data-focus": "add", on: { change: (event) => event.target.value && change({ pick: [...ids, event.target.value].join(",") }) } },
    el("option", { value: "" }, "…"), candidates.slice(0, 500).map((row) => el("option", { value: row.system.id }, row.system.name))));
  const head = [el("h2", {}, title), el("p", { class: "sub" }, groupName(data.groups[c.group]) + ", " + placeName(c))];
  if (!all.length) return [head, legend, adder, el("p", {}, t("chart.empty"))];
  const width = canvasWidth(860), height = 400, left = 52, right = width - 16, top = 14, bottom = height - 74;
  const ticks = niceTicks(Math.min(0, ...all), Math.max(...all), 6);
  const y = linear(ticks[0], ticks.at(-1), bottom, top);
  const step = (right - left) / c.conditions.length;
  const x = (at) => left + step * (at + 0.5);
  const slanted = step < 110;
  const names = c.conditions.map((condition, at) => svg("text", { class: "tick", x: x(at), y: bottom + 18, "text-anchor": slanted ? "end" : "middle", transform: slanted ? `rotate(-32 ${x(at)} ${bottom + 18})` : null }, cut(conditionName(condition), slanted ? 96 : step - 6, 12)));
  const lines = ids.map((id, at) => {
    const style = series(at), shift = (at - (ids.length - 1) / 2) * Math.min(7, (step * 0.5) / ids.length);
    const own = points.map((map, place) => ({ place, row: map.get(id) })).filter((one) => one.row);
    const path = own.map((one, i) => (i && own[i - 1].place === one.place - 1 ? "L" : "M") + (x(one.place) + shift).toFixed(1) + "," + y(one.row.score.value).toFixed(1)).join("");
    return svg("g", { class: style.color }, svg("path", { class: "curve", d: path }), own.map((one) => {
      const s = one.row.score, px = x(one.place) + shift;
      return [s.low !== null && s.high !== null && svg("line", { class: "whisker", x1: px, x2: px, y1: y(s.low), y2: y(s.high) }), marker(style.shape, px, y(s.value), 4)];
    }));
  });
  const drawn = frame(width, height, title, axisY(ticks, y, left, right), svg("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }), names, lines);
  const rows = ids.map((id) => [systemLink(data.systems[systemAt.get(id)]), ...points.map((at) => { const row = at.get(id); return row ? [number(row.score.value), within(row.score)] : blank; })]);
  return [head, legend, adder, el("figure", {}, drawn, el("figcaption", { class: "note" }, t("curves.note", { n: mostCurves }))), numbersTable(title, [t("system"), ...c.conditions.map(conditionName)], rows)];
}

function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) for (const factor of [1, 2, 5]) { const tick = factor * 10 ** power; if (tick >= low / 2.01 && tick <= high * 2.01) found.push(tick); }
  return found.length > 8 ? found.filter((tick) => Number.isInteger(Math.round(Math.log10(tick) * 1e9) / 1e9)) : found;
}
function pareto(c, rows) {
  const sorted = [...rows].sort((a, b) => b.rtfx - a.rtfx || better(c)(a.score.order, b.score.order));
  const front = [];
  for (const row of sorted) {
    const last = front.at(-1);
    if (!last || better(c)(row.score.order, last.score.order) < 0) front.push(row);
  }
  return front;
}
function speedView(c) {
  const own = c.rows.filter((row) => row.score && inOrder(row));
  const rows = own.filter((row) => row.rtfx > 0);
  const title = t("speed.title", { metric: metricName(c.metric) });
  const head = [el("h2", {}, title), el("p", { class: "sub" }, wordsOf(c))];
  const missing = own.length - rows.length > 0 && el("p", { class: "note" }, t("left_out", { n: own.length - rows.length }));
  if (!rows.length) return [head, el("p", {}, t("chart.empty")), missing];
  const front = pareto(c, rows), onFront = new Set(front);
  const width = canvasWidth(860), height = 430, left = 52, right = width - 16, top = 14, bottom = height - 48;
  const values = rows.map((row) => row.score.value), speeds = rows.map((row) => row.rtfx);
  const ticks = niceTicks(Math.min(...values), Math.max(...values), 6), y = linear(ticks[0], ticks.at(-1), c.lower ? top : bottom, c.lower ? bottom : top);
  const low = Math.min(...speeds) / 1.3, high = Math.max(...speeds) * 1.3;
  const log = linear(Math.log10(low), Math.log10(high), left, right), x = (value) => log(Math.log10(value));
  const steps = logTicks(low, high).filter((tick) => tick >= low && tick <= high);
  const axis = steps.map((tick) => [svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: top, y2: bottom }), svg("text", { class: "tick", x: x(tick), y: bottom + 18, "text-anchor": "middle" }, minus(String(Number(tick.toPrecision(3)))))]);
  const line = front.map((row, at) => (at ? "L" : "M") + x(row.rtfx).toFixed(1) + "," + y(row.score.value).toFixed(1)).join("");
  const place = (row) => ({ x: x(row.rtfx), y: y(row.score.value), label: row.system.name });
  const dots = rows.map((row) => { const p = place(row); return svg("a", { href: address("system", [row.system.id]), "aria-label": row.system.name, tabindex: onFront.has(row) ? null : "-1", class: onFront.has(row) ? "s1" : "s0" },
    svg("title", {}, row.system.name + ": " + number(row.score.value) + ", RTFx " + short(row.rtfx)), marker(onFront.has(row) ? "diamond" : "circle", p.x, p.y, 4.5)); });
  const points = front.map(place), covered = rows.map(place).map((p) => [p.x - 5, p.y - 5, p.x + 5, p.y + 5]);
  const drawn = frame(width, height, title, axisY(ticks, y, left, right), axis, svg("text", { class: "tick", x: right, y: bottom + 38, "text-anchor": "end" }, t("speed.axis")), svg("path", { class: "curve s1", d: line }), dots, labels(points, left, right, covered));
  drawn.removeAttribute("role");
  const listed = [...rows].sort((a, b) => better(c)(a.score.order, b.score.order)).slice(0, pageSize).map((row) => [systemLink(row.system), [number(row.score.value), row.score.most !== null && within(row.score)], short(row.rtfx), onFront.has(row) ? t("yes") : "", ((row.system.configs || {})[row.config] || {}).hardware || blank]);
  return [head, el("figure", {}, drawn, el("figcaption", { class: "note" }, t("speed.note"))), missing, numbersTable(title, [t("system"), metricName(c.metric), t("rtfx"), t("frontier"), t("hardware")], listed)];
}

function partName(system, role) { const model = (system.models || []).find((one) => one.role === role); return model ? model.name : ""; }
// Two roles that the systems combine: those that most of them have.
const rolePairs = [["transcriber", "retriever"], ["transcriber", "answerer"], ["front_end", "transcriber"]];
function heatView(c) {
  const having = ([one, other]) => c.rows.filter((row) => row.score && inOrder(row) && partName(row.system, one) && partName(row.system, other));
  const [first, second] = [...rolePairs].sort((a, b) => having(b).length - having(a).length)[0];
  const rows = having([first, second]);
  const title = rows.length ? t("heat.title", { first: t("role." + first), second: t("role." + second) }) : t("view.heat");
  const head = [el("h2", {}, title), el("p", { class: "sub" }, wordsOf(c))];
  if (!rows.length) return [head, el("p", {}, t("chart.empty"))];
  const best = new Map();
  for (const row of rows) {
    const key = partName(row.system, first) + "\u0000" + partName(row.system, second), before = best.get(key);
    if (!before || better(c)(row.score.order, before.score.order) < 0) best.set(key, row);
  }
  const mean = (role, one) => { const own = [...best.values()].filter((row) => partName(row.system, role) === one).map((row) => row.score.value); return own.reduce((a, b) => a + b, 0) / own.length; };
  const sortedNames = (role) => unique(rows.map((row) => partName(row.system, role))).sort((a, b) => better(c)(mean(role, a), mean(role, b)) || collator.compare(a, b));
  const across = sortedNames(second).slice(0, 60), down = sortedNames(first).slice(0, 100);
  const values = [...best.values()].map((row) => row.score.value), low = Math.min(...values), high = Math.max(...values);
  const level = (value) => { const share = high > low ? (value - low) / (high - low) : 1; return Math.round(8 * (c.lower ? 1 - share : share)); };
  const table = el("table", { class: "heat" }, caption(t("heat.note")),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, title), across.map((one) => el("th", { scope: "col" }, name(one))))),
    el("tbody", {}, down.map((one) => el("tr", {}, el("th", { scope: "row" }, name(one)), across.map((other) => {
      const row = best.get(one + "\u0000" + other);
      return row ? el("td", { class: "h" + level(row.score.value) }, el("a", { href: address("system", [row.system.id]), title: row.system.name }, number(row.score.value))) : el("td", { class: "none" }, blank);
    })))));
  return [head, scroller(title, table)];
}

const median = (values) => { const sorted = [...values].sort((a, b) => a - b), half = sorted.length / 2; return sorted.length % 2 ? sorted[Math.floor(half)] : (sorted[half - 1] + sorted[half]) / 2; };
function steadyTable(c) {
  const found = data.steady.find((one) => one.group === c.group && one.language === c.language && one.metric === c.metric);
  if (!found || c.subset) return null;
  const shown = new Set(c.rows.map((row) => row.system));
  const rows = found.systems.map((at, i) => ({ system: data.systems[at], sigma: found.sigma[i].map(scaled), snr: found.snr[i] }))
    .filter((one) => shown.has(one.system)).sort((a, b) => a.sigma[0] - b.sigma[0]).slice(0, pageSize);
  const snr = t(c.lower ? "steady.snr_points" : "steady.snr");
  return rows.length > 0 && [numbersTable(t("steady.title", { metric: metricName(c.metric), place: placeName(c) }), [t("system"), "σ", snr],
    rows.map((one) => [systemLink(one.system), [number(one.sigma[0]), within({ low: one.sigma[1], high: one.sigma[2] })], one.snr || blank])), el("p", { class: "note" }, t("steady.note"))];
}
function robustnessView(c) {
  const title = t("robustness.title");
  const head = [el("h2", {}, title), el("p", { class: "sub" }, wordsOf(c))];
  const baseline = (c.by && c.baselines.includes(c.by) ? c.by : "") || (c.baselines.find(isClean) || c.baselines[0]);
  if (!baseline) return [head, el("p", {}, t("robustness.choose", { condition: conditionName(c.condition) })), steadyTable(c)];
  const before = new Map(c.rowsAt(baseline).map((row) => [row.system.id, row]));
  const rows = c.rows.filter((row) => row.losses[baseline] && before.get(row.system.id)?.score && inOrder(row))
    .map((row) => ({ row, lost: row.losses[baseline], start: before.get(row.system.id).score }));
  if (!rows.length) return [head, el("p", {}, t("chart.empty"))];
  const width = canvasWidth(860), height = 430, left = 58, right = width - 16, top = 14, bottom = height - 48;
  const starts = rows.map((one) => one.start.value), losses = rows.map((one) => one.lost.value);
  const xs = niceTicks(Math.min(...starts), Math.max(...starts), width < 500 ? 4 : 7), shownBars = rows.length <= 60 ? rows.flatMap((one) => [one.lost.low ?? one.lost.value, one.lost.high ?? one.lost.value]) : losses,
    ys = niceTicks(Math.min(0, ...shownBars), Math.max(...shownBars), 6);
  const x = linear(xs[0], xs.at(-1), c.lower ? right : left, c.lower ? left : right), y = linear(ys[0], ys.at(-1), bottom, top);
  const digits = digitsOf(xs);
  const axis = xs.map((tick) => [svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: top, y2: bottom }), svg("text", { class: "tick", x: x(tick), y: bottom + 18, "text-anchor": "middle" }, number(tick, digits))]);
  const middle = [svg("line", { class: "divider", x1: x(median(starts)), x2: x(median(starts)), y1: top, y2: bottom }), svg("line", { class: "divider", x1: left, x2: right, y1: y(median(losses)), y2: y(median(losses)) })];
  const sorted = [...rows].sort((a, b) => a.lost.order - b.lost.order);
  const place = (one) => ({ x: x(one.start.value), y: y(one.lost.value), label: one.row.system.name });
  const dots = sorted.map((one, at) => { const p = place(one); return svg("a", { href: address("system", [one.row.system.id]), "aria-label": one.row.system.name, tabindex: at < 10 ? null : "-1", class: "s0" },
    svg("title", {}, one.row.system.name + ": " + number(one.start.value) + ", " + number(one.lost.value)),
    one.lost.low !== null && rows.length <= 60 && svg("line", { class: "whisker", x1: p.x, x2: p.x, y1: y(one.lost.low), y2: y(one.lost.high) }), marker("circle", p.x, p.y, 4.5)); });
  const shown = sorted.map(place);
  const axisText = t("robustness.x", { metric: metricName(c.metric), condition: conditionName(baseline) });
  const lossText = t("loss", { baseline: conditionName(baseline) });
  const drawn = frame(width, height, title, axisY(ys, y, left, right), axis, middle, dots, labels(shown.slice(0, 40), left, right, [[left, top, left + 8 + widthOf(lossText, 12), top + 14], ...shown.map((p) => [p.x - 5, p.y - 5, p.x + 5, p.y + 5])]), svg("text", { class: "tick", x: right, y: bottom + 38, "text-anchor": "end" }, axisText), svg("text", { class: "tick halo", x: left + 4, y: top + 10 }, lossText));
  drawn.removeAttribute("role");
  const listed = sorted.slice(0, pageSize).map((one) => [systemLink(one.row.system), rankText(one.lost), [number(one.lost.value), within(one.lost)], percent(one.lost.relative), number(one.start.value)]);
  return [head, el("figure", {}, drawn, el("figcaption", { class: "note" }, t("robustness.note"))), numbersTable(lossText + ", " + conditionName(c.condition), [t("system"), t("rank"), lossText, "%", axisText], listed), steadyTable(c)];
}
