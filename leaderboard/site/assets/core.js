// Data, texts, elements, and the state in the address.
const data = JSON.parse(document.getElementById("data").textContent);
const strings = JSON.parse(document.getElementById("strings").textContent);
const svgSpace = "http://www.w3.org/2000/svg";

const stored = {
  get(key) { try { return localStorage.getItem("squtr-" + key); } catch (e) { return null; } },
  // A page from a file may have no storage: the choice then lasts until it closes.
  set(key, value) { try { localStorage.setItem("squtr-" + key, value); } catch (e) { /* see above */ } },
};

let ui = "en";
function t(key, values) {
  const text = strings[ui][key] === undefined ? key : strings[ui][key];
  return text.replace(/\{(\w+)\}/g, (whole, name) => (values && name in values ? String(values[name]) : whole));
}
const known = (key, fallback) => (strings[ui][key] === undefined ? fallback : t(key));

// Children that are texts become text nodes: nothing from a result is ever read as HTML.
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") { for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler); }
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child instanceof Node ? child : String(child));
  }
  return element;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(svgSpace, tag), attributes, children);
// Names of systems may be of any script and direction.
// A caption stays in view while its table is moved sideways.
const caption = (...children) => el("caption", {}, el("span", {}, children));
const name = (text) => el("bdi", {}, text);

function outside(address, text) {
  let valid = false;
  try { valid = new URL(address).protocol === "https:"; } catch (e) { valid = false; }
  return valid ? el("a", { href: address, rel: "noopener noreferrer nofollow", target: "_blank" }, name(text)) : name(text);
}

// #/view/one/two?key=value
const state = { view: "table", path: [], query: {} };
function decoded(text) { try { return decodeURIComponent(text.replace(/\+/g, " ")); } catch (e) { return ""; } }
function readAddress() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").filter(Boolean).map(decoded);
  state.view = parts[0] || "table";
  state.path = parts.slice(1);
  state.query = {};
  for (const pair of (query || "").split("&")) {
    const at = pair.indexOf("=");
    if (at > 0) state.query[decoded(pair.slice(0, at))] = decoded(pair.slice(at + 1));
  }
}
// What is chosen follows from view to view; where one is in a table does not.
const kept = ["b", "lang", "sub", "cond", "m", "norm", "by", "pick", "ui"];
function address(view, path, changes, all) {
  const query = {};
  for (const [key, value] of Object.entries(state.query)) if (all || kept.includes(key)) query[key] = value;
  Object.assign(query, changes || {});
  const pairs = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, value]) => encodeURIComponent(key) + "=" + encodeURIComponent(value));
  return "#/" + [view, ...(path || [])].map(encodeURIComponent).join("/") + (pairs.length ? "?" + pairs.join("&") : "");
}
function change(changes, quiet) {
  const next = address(state.view, state.path, changes, true);
  if (next === location.hash) return;
  // Typing in a field leaves no trail in the history.
  if (quiet) { history.replaceState(null, "", next); readAddress(); render(); } else location.hash = next;
}

// Numbers as they are written in the language of the page.
const blank = "–";
const minus = (text) => text.replace("-", "−");
function number(value, digits) {
  if (value === null || value === undefined || !isFinite(value)) return blank;
  const text = value.toFixed(digits === undefined ? 3 : digits);
  return minus(Number(text) === 0 ? text.replace("-", "") : text);
}
const signed = (value, digits) => (value > 0 && Number(value.toFixed(digits === undefined ? 3 : digits)) !== 0 ? "+" : "") + number(value, digits);
const percent = (value) => (value === null || value === undefined ? blank : number(100 * value, 1) + "\u202f%");
function short(value) {
  if (value === null || value === undefined) return blank;
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return number(value, digits);
}
function count(value) {
  if (value === null || value === undefined) return blank;
  for (const [size, letter] of [[1e9, "B"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= size) return Number((value / size).toPrecision(3)) + "\u202f" + letter;
  }
  return String(value);
}
const memory = (mb) => (mb === undefined || mb === null ? blank : mb >= 1000 ? number(mb / 1000, 1) + "\u202fGB" : number(mb, 0) + "\u202fMB");

const metricLabels = new Map(data.groups.flatMap((group) => Object.entries(group.labels)));
const metricName = (metric) => metricLabels.get(metric) || metric;
// A condition is a list of steps, in physical order; what has none is shown by its name.
const stepsOf = (condition) => (Object.hasOwn(data.steps, condition) ? data.steps[condition] : null);
const isClean = (condition) => stepsOf(condition)?.length === 0;
function stepName(step) {
  const values = Object.fromEntries(Object.entries(step).map(([key, value]) => [key, minus(String(value))]));
  return strings[ui]["step." + step.step] === undefined ? step.step : t("step." + step.step, values);
}
function conditionName(condition) {
  const steps = stepsOf(condition);
  if (steps === null) return known("cond." + condition, condition);
  return steps.length ? steps.map(stepName).join(" + ") : t("cond.clean");
}
const conditionChoice = (condition) => { const label = conditionName(condition); return stepsOf(condition)?.length ? condition + ": " + label : label; };
function languageName(code) {
  if (!code) return blank;
  try { return new Intl.DisplayNames([ui], { type: "language" }).of(code); } catch (e) { return code; }
}
const collator = new Intl.Collator("en", { numeric: true });
const unique = (values) => [...new Set(values)];
const whoName = (who) => known("who." + who, who);
const kindName = (kind) => known("kind." + kind, kind);

// What the tables hold, as rows.
const isLower = (metric) => data.lower.includes(metric);
const scaled = (value) => (value === null || value === undefined ? null : value / data.unit);
const columnAt = (column, at) => (column === undefined ? null : column[at]);
const oneOrAt = (value, at) => (Array.isArray(value) ? value[at] : value);
const byKey = new Map();
const keyOf = (group, language, subset, condition, metric) => [group, language, subset, condition, metric].join("\u0000");
for (const table of data.tables) byKey.set(keyOf(table.group, table.language, table.subset, table.condition, table.metric), table);
const systemAt = new Map(data.systems.map((system, at) => [system.id, at]));

function measured(columns, at) {
  const value = scaled(columns.value[at]);
  if (value === null) return null;
  // Of an error rate that leaves failed items out: without errors in them, and with all their words deleted, by which it is ordered.
  const least = scaled(columnAt(columns.least, at)), most = scaled(columnAt(columns.most, at));
  return {
    value, least, most, order: most === null ? value : most, n: columns.n === undefined ? null : oneOrAt(columns.n, at), low: scaled(columnAt(columns.low, at)), high: scaled(columnAt(columns.high, at)),
    relative: scaled(columnAt(columns.relative, at)), best: columnAt(columns.best, at), worst: columnAt(columns.worst, at),
    rank: columnAt(columns.rank, at), position: columnAt(columns.position, at),
  };
}
function rowsOf(table) {
  if (!table) return [];
  if (!table.rows) {
    table.rows = table.systems.map((place, at) => {
      const system = data.systems[place];
      const config = configOf(system, table);
      const own = (system.configs || {})[config] || {};
      const losses = {};
      for (const [baseline, columns] of Object.entries(table.loss || {})) losses[baseline] = measured(columns, at);
      const timing = own.timing || {};
      const covered = own.total === undefined || own.n === own.total;
      return {
        system, config, score: measured(table, at), losses, n: oneOrAt(table.n, at),
        failed: table.failed === undefined ? null : oneOrAt(table.failed, at),
        normalizer: table.normalizer === undefined ? "" : oneOrAt(table.normalizer, at),
        erratum: (table.errata || {})[at] || "", rtfx: timing.rtfx,
        memory: timing.peak_gpu_memory_mb || timing.peak_memory_mb, who: own.who || system.who,
        partial: system.partial || !covered, n_of: own.n, total: own.total,
      };
    });
  }
  return table.rows;
}
// A subset may have a config of its own, or be a part of its language's.
function configOf(system, table) {
  const configs = system.configs || {};
  const tail = table.condition ? "_" + table.condition : "";
  for (const head of [table.subset, table.language]) if (head && (head + tail) in configs) return head + tail;
  return table.condition in configs ? table.condition : Object.keys(configs)[0];
}
const inOrder = (row) => row.system.ranked && !row.partial;

// The choice of a table: what the address says where that exists, else the nearest that does.
function chosen() {
  const q = state.query;
  const group = Math.max(0, data.groups.findIndex((one) => one.id === q.b));
  const all = data.tables.filter((table) => table.group === group);
  const pick = (values, wanted, preferred) => (values.includes(wanted) ? wanted : preferred.find((v) => values.includes(v)) ?? values[0]);
  const languages = unique(all.map((table) => table.language));
  const language = pick(languages, q.lang, ["en"]);
  const inLanguage = all.filter((table) => table.language === language);
  const subsets = unique(inLanguage.map((table) => table.subset)).sort(collator.compare);
  const subset = pick(subsets, q.sub || "", [""]);
  const inSubset = inLanguage.filter((table) => table.subset === subset);
  const conditions = data.conditions.filter((condition) => inSubset.some((table) => table.condition === condition));
  // Robustness is about losses: without a choice, the hardest condition that has one.
  const lossy = [...conditions].reverse().filter((one) => inSubset.some((table) => table.condition === one && table.loss));
  const condition = pick(conditions, q.cond, state.view === "robustness" ? lossy : conditions.filter(isClean));
  const here = inSubset.filter((table) => table.condition === condition);
  const metrics = data.groups.length ? data.groups[group].metrics.filter((m) => here.some((table) => table.metric === m)) : [];
  const metric = pick(metrics, q.m, []);
  const at = (other, measure) => byKey.get(keyOf(group, language, subset, other, measure || metric));
  const table = at(condition);
  const normalizers = table && table.normalizer !== undefined ? unique(rowsOf(table).map((row) => row.normalizer)).sort() : [];
  const most = (own) => rowsOf(table).filter((row) => row.normalizer === own).length;
  const normalizer = normalizers.length > 1 ? pick(normalizers, q.norm, [...normalizers].sort((a, b) => most(b) - most(a))) : "";
  const baselines = table ? Object.keys(table.loss || {}) : [];
  const by = baselines.includes(q.by) ? q.by : "";
  const filter = (rows) => (normalizer ? rows.filter((row) => row.normalizer === normalizer) : rows);
  return {
    group, languages, language, subsets, subset, conditions, condition, metrics, metric, normalizers, normalizer, baselines, by, table,
    lower: isLower(metric), rows: filter(rowsOf(table)), rowsAt: (other, measure) => filter(rowsOf(at(other, measure))), tableAt: at,
  };
}
const groupName = (group) => [group.name, group.version, group.source && "· " + group.source].filter(Boolean).join(" ");
const placeName = (c) => (c.subset ? c.subset : languageName(c.language));
const wordsOf = (c) => t("caption", {
  benchmark: groupName(data.groups[c.group]), place: placeName(c), condition: conditionName(c.condition), metric: metricName(c.metric),
});
const better = (c) => (a, b) => (c.lower ? a - b : b - a);
const ordered = (c, rows) => rows.filter((row) => row.score).sort((a, b) =>
  (a.score.position ?? 1e9) - (b.score.position ?? 1e9) || better(c)(a.score.order, b.score.order) || collator.compare(a.system.name, b.system.name));
const picks = () => (state.query.pick || "").split(",").filter((id) => systemAt.has(id));

const systemLink = (system) => el("a", { href: address("system", [system.id]), class: "system", "data-focus": "system-" + system.id }, name(system.name));
function badge(row) {
  const who = row.who || row.system.who;
  if (who === "self-reported") return null;
  return el("span", { class: "badge " + (who === "published" ? "published" : who === "re-scored" ? "checked" : "") }, whoName(who));
}
function within(score, digits) {
  if (!score) return null;
  const interval = score.low !== null && score.high !== null && el("small", { title: t("interval", { low: number(score.low, digits), high: number(score.high, digits) }) },
    number(score.low, digits) + "–" + number(score.high, digits));
  const bounds = score.most !== null && score.most !== undefined && el("small", { class: "bounds", title: t("caption.failed") },
    t("with_failed", { n: score.n ?? blank, low: number(score.least, digits), high: number(score.most, digits) }));
  return interval || bounds ? [interval, bounds] : null;
}
function rankText(score) {
  if (!score || score.position === null) return blank;
  // Without records of single queries the place of the value is all that is known.
  if (score.rank === null) return "(" + score.position + ")";
  const between = score.best === score.worst ? String(score.best) : score.best + "–" + score.worst;
  return [String(score.rank), between !== String(score.rank) && el("small", { title: t("rank.interval", { low: score.best, high: score.worst }) }, between)];
}
