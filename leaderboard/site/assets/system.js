// One system, and two side by side.
function pair(label, ...content) { return el("div", {}, el("dt", {}, label), el("dd", {}, content)); }

function settingsTree(value) {
  if (value === null || typeof value !== "object") return el("code", {}, value === null ? "null" : String(value));
  const entries = Object.entries(value);
  if (!entries.length) return el("code", {}, Array.isArray(value) ? "[]" : "{}");
  if (Array.isArray(value) && value.every((one) => one === null || typeof one !== "object")) return el("code", {}, value.map(String).join(", "));
  return el("dl", { class: "settings" }, entries.map(([key, inner]) => pair(key, settingsTree(inner))));
}
function configTable(system, kind, heading, noteText, naming, format) {
  const configs = Object.entries(system.configs || {}).filter(([, own]) => own[kind] && Object.keys(own[kind]).length);
  if (!configs.length) return null;
  const columns = unique(configs.flatMap(([, own]) => Object.keys(own[kind])));
  return el("section", {}, el("h2", {}, heading), noteText && el("p", { class: "note" }, noteText), scroller(heading, el("table", {}, caption(heading),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, t("config")), columns.map((column) => el("th", { scope: "col", class: "num" }, naming(column))))),
    el("tbody", {}, configs.map(([config, own]) => el("tr", {}, el("th", { scope: "row" }, name(config)), columns.map((column) => el("td", { class: "num" + (own[kind][column] ? "" : " none") }, own[kind][column] === undefined ? blank : format(own[kind][column], column)))))))));
}
function systemScores(system) {
  const group = data.groups[system.group];
  const own = data.tables.filter((table) => table.group === system.group && table.systems.includes(systemAt.get(system.id)));
  const metrics = data.groups[system.group].metrics.filter((metric) => own.some((table) => table.metric === metric));
  const places = unique(own.map((table) => [table.language, table.subset, table.condition].join("\u0000")));
  if (!places.length) return null;
  const rows = places.map((place) => {
    const [language, subset, condition] = place.split("\u0000");
    const cells = metrics.map((metric) => {
      const table = byKey.get(keyOf(system.group, language, subset, condition, metric));
      const row = rowsOf(table).find((one) => one.system === system);
      if (!row || !row.score) return el("td", { class: "num none" }, blank);
      const ranked = inOrder(row) && row.score.position !== null;
      return el("td", { class: "num" }, number(row.score.value), row.erratum && el("abbr", { title: row.erratum, class: "erratum" }, " †"), within(row.score), ranked && el("small", {}, el("a", { href: address("table", [], { b: group.id, lang: language, sub: subset, cond: condition, m: metric }) }, "#" + (row.score.rank ?? row.score.position))));
    });
    return el("tr", {}, el("th", { scope: "row" }, subset ? name(subset) : languageName(language), el("small", {}, conditionName(condition))), cells);
  });
  return el("section", {}, el("h2", {}, t("scores")), scroller(t("scores"), el("table", {}, caption(t("caption.note")),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, t("condition")), metrics.map((metric) => el("th", { scope: "col", class: "num" }, metricName(metric), el("small", {}, t(isLower(metric) ? "caption.down" : "caption.up")))))), el("tbody", {}, rows))));
}
function systemView(id) {
  const system = data.systems[systemAt.get(id)];
  if (!system) return [el("h1", { tabindex: "-1" }, t("view.system")), el("p", {}, t("not_found_system", { id })), el("p", {}, el("a", { href: address("table") }, t("to_ranking")))];
  const group = data.groups[system.group], about = system.data || {};
  const models = (system.models || []).map((model) => el("tr", {}, el("th", { scope: "row" }, known("role." + model.role, model.role)), el("td", {}, outside(model.link, model.name || blank)),
    el("td", { class: "wide" }, el("code", {}, model.revision || blank)), el("td", { class: "num" }, count(model.parameters)), el("td", {}, model.open === null || model.open === undefined ? blank : model.open ? t("yes") : t("no"))));
  const files = Object.entries(system.configs || {}).filter(([, own]) => own.file);
  const fileLink = (path) => (data.results.url ? outside(data.results.url + "/blob/main/" + path.split("/").map(encodeURIComponent).join("/"), path) : el("code", {}, path));
  const facts = el("dl", { class: "facts" }, pair(t("benchmark"), name(groupName(group))), pair(t("kind"), kindName(system.kind)), pair(t("who"), whoName(system.who)), pair(t("date"), system.date || blank),
    pair(t("parameters"), system.parameters === null ? t("unknown") : count(system.parameters)), pair(t("open"), system.open === null || system.open === undefined ? t("unknown") : openText(system)),
    pair(t("data"), name([about.source, about.source_version].filter(Boolean).join(" ") || blank)), about.revision && pair(t("revision"), el("code", {}, about.revision)), about.squtr_version && pair("squtr", about.squtr_version));
  return [
    el("h1", { tabindex: "-1" }, name(system.name), " ", badge({ system })),
    system.partial && el("p", { class: "warning" }, t("partial.note")), !system.ranked && el("p", { class: "warning" }, t("outside.note")),
    (system.notes || []).map((text) => el("p", { class: "warning" }, text)),
    facts,
    el("p", {}, el("a", { href: address("compare", [system.id]) }, t("view.compare")), " · ", el("a", { href: address("curves", [], { pick: system.id, b: group.id }) }, t("view.curves"))),
    Object.keys(system.errata || {}).length > 0 && el("section", {}, el("h2", {}, t("errata")), el("dl", { class: "settings" }, Object.entries(system.errata).map(([key, text]) => pair(key, text)))),
    systemScores(system),
    configTable(system, "failures", t("failures"), t("failures.note"), (key) => known("fail." + key, key), String),
    configTable(system, "timing", t("timing"), t("about.speed"), (key) => key, (value) => short(value)),
    models.length > 0 && el("section", {}, el("h2", {}, t("models")), scroller(t("models"), el("table", {}, caption(t("models")), el("thead", {}, el("tr", {}, [t("role"), t("models"), t("revision"), t("parameters"), t("open")].map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, models)))),
    el("section", {}, el("h2", {}, t("settings")), Object.keys(system.settings || {}).length > 0 && settingsTree(system.settings),
      Object.entries(system.parts || {}).map(([role, at]) => [el("h3", {}, known("role." + role, role)), settingsTree(data.parts[at])]), Object.keys(group.aspects || {}).length > 0 && [el("h3", {}, t("data")), settingsTree(group.aspects)]),
    files.length > 0 && el("section", {}, el("h2", {}, t("files")), scroller(t("files"), el("table", {}, caption(t("files")), el("thead", {}, el("tr", {}, [t("config"), t("file"), "sha256", t("normalizer"), t("hardware"), t("self_check"), t("who")].map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, files.map(([config, own]) => el("tr", {}, el("th", { scope: "row" }, name(config)), el("td", { class: "wide" }, fileLink(own.file)), el("td", {}, el("code", {}, own.hash || blank)), el("td", {}, own.normalizer || blank), el("td", { class: "wide" }, own.hardware || blank), el("td", {}, own.self_check ? known("check." + own.self_check, own.self_check) : blank), el("td", {}, whoName(own.who))))))),
      (system.superseded || []).length > 0 && el("details", {}, el("summary", {}, t("superseded")), el("ul", {}, system.superseded.map((path) => el("li", {}, fileLink(path)))))),
  ];
}

function systemSelect(label, at, ids, current) {
  return el("label", { class: "field" }, t(label), el("select", { "data-focus": "compare-" + at, on: { change: (event) => { const next = [...state.path]; next[at] = event.target.value; location.hash = address("compare", [next[0] || "-", next[1] || "-"]); } } },
    el("option", { value: "-" }, "…"), ids.map((id) => el("option", { value: id, selected: id === current }, data.systems[systemAt.get(id)].name))));
}
function testOf(c, a, b) {
  const own = data.pairs[[c.group, c.language, c.subset, c.condition].join("/")] || {};
  if (own[a + " " + b]) return own[a + " " + b];
  const other = own[b + " " + a];
  if (!other) return null;
  const turned = {};
  for (const [metric, test] of Object.entries(other)) {
    const [first, second, difference, low, high, p, holm, detectable, n] = test;
    turned[metric] = [second, first, -difference, high === null ? null : -high, low === null ? null : -low, p, holm, detectable, n];
  }
  return turned;
}
const paired = (x, y) => x.most === null && y.most === null;
const pText = (p) => (p === null || p === undefined ? blank : p < 0.001 ? "< 0.001" : number(p, 3));
function compareView(c) {
  const [a, b] = [0, 1].map((at) => (systemAt.has(state.path[at]) ? data.systems[systemAt.get(state.path[at])] : null));
  const inGroup = data.systems.filter((system) => system.group === c.group || system === a || system === b).sort((x, y) => collator.compare(x.name, y.name)).map((system) => system.id);
  const head = [el("h2", {}, t("compare.title")), el("div", { class: "choices" }, systemSelect("compare.first", 0, inGroup, a?.id), systemSelect("compare.second", 1, inGroup, b?.id),
    a && b && el("button", { type: "button", "data-focus": "swap", on: { click: () => { location.hash = address("compare", [b.id, a.id]); } } }, t("swap")))];
  if (!a || !b || a === b) return [head, el("p", {}, t("compare.choose"))];
  const why = a.group !== b.group ? t("compare.different.group") : a.partial !== b.partial ? t("compare.different.partial") : "";
  if (why) return [head, el("p", { class: "warning" }, t("compare.different", { why }))];
  const row = (condition, metric, system) => rowsOf(byKey.get(keyOf(a.group, c.language, c.subset, condition, metric))).find((one) => one.system === system);
  const test = a.group === c.group ? testOf(c, a.id, b.id) : null;
  const metrics = data.groups[a.group].metrics.filter((metric) => row(c.condition, metric, a)?.score && row(c.condition, metric, b)?.score
    && (!isLower(metric) || row(c.condition, metric, a).normalizer === row(c.condition, metric, b).normalizer));
  const winner = (metric, x, y) => (x === y ? "" : (isLower(metric) ? x < y : x > y) ? "a" : "b");
  const cell = (score, wins) => el("td", { class: "num" + (wins ? " wins" : "") }, number(score.value), wins && el("span", { class: "unseen" }, " " + t("compare.better")), within(score));
  const rows = metrics.map((metric) => {
    const x = row(c.condition, metric, a).score, y = row(c.condition, metric, b).score, own = test && test[metric];
    const wins = own ? winner(metric, own[0], own[1]) : winner(metric, x.order, y.order);
    // Where items failed, the two values are over other items: only a paired test has a difference.
    const difference = own ? own[2] : paired(x, y) ? x.value - y.value : null;
    return el("tr", { "data-metric": metric }, el("th", { scope: "row" }, metricName(metric)), cell(x, wins === "a"), cell(y, wins === "b"),
      el("td", { class: "num" }, difference === null ? blank : signed(difference), own && own[3] !== null && el("small", {}, number(own[3]) + " … " + number(own[4]))),
      el("td", { class: "num p" }, own ? pText(own[5]) : blank), el("td", { class: "num p" }, own ? pText(own[6]) : blank), el("td", { class: "num" }, own ? number(own[7]) : blank), el("td", { class: "num" }, own ? own[8] : blank));
  });
  const main = c.metric;
  const everywhere = c.conditions.map((condition) => ({ condition, x: row(condition, main, a)?.score, y: row(condition, main, b)?.score })).filter((one) => one.x && one.y);
  return [head, el("p", { class: "sub" }, wordsOf(c)),
    rows.length ? scroller(t("compare.title"), el("table", { class: "compare" }, caption(test ? t("compare.tested") : t("compare.untested", { n: data.tested })),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, t("metric")), el("th", { scope: "col", class: "num" }, systemLink(a)), el("th", { scope: "col", class: "num" }, systemLink(b)), ["compare.difference", "compare.p", "compare.p_holm", "compare.detectable", "n"].map((key) => el("th", { scope: "col", class: "num" }, t(key))))),
      el("tbody", {}, rows))) : el("p", {}, t("chart.empty")),
    everywhere.length > 0 && el("section", {}, el("h2", {}, t("compare.all")), scroller(t("compare.all"), el("table", { class: "compare" }, caption(metricName(main)), el("thead", {}, el("tr", {}, el("th", { scope: "col" }, t("condition")), [a, b].map((system) => el("th", { scope: "col", class: "num" }, name(system.name))), el("th", { scope: "col", class: "num" }, t("compare.difference")))),
      el("tbody", {}, everywhere.map(({ condition, x, y }) => { const wins = winner(main, x.order, y.order); return el("tr", {}, el("th", { scope: "row" }, conditionName(condition)), cell(x, wins === "a"), cell(y, wins === "b"), el("td", { class: "num" }, paired(x, y) ? signed(x.value - y.value) : blank)); })))))];
}
function aboutView() {
  return [el("h2", {}, t("about.title")), el("ul", { class: "about" }, ["rank", "loss", "failed", "apart", "who", "text", "speed", "private"].map((key) => el("li", {}, t("about." + key))))];
}
