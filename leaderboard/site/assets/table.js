// The ranking: filters, a sortable table in pages, downloads.
const pageSize = 100;

function columnsOf(c) {
  const rank = (row) => (c.by ? row.losses[c.by] : row.score);
  const found = [
    { key: "rank", label: t("rank"), value: (row) => (rank(row) ? rank(row).position : null), cell: (row) => rankText(rank(row)), numeric: true },
    { key: "system", label: t("system"), value: (row) => row.system.name, head: true, cell: (row) => [systemLink(row.system), " ", badge(row), el("small", {}, kindName(row.system.kind))] },
    { key: "score", label: metricName(c.metric), value: (row) => row.score?.order ?? null, down: !c.lower, numeric: true, main: true,
      cell: (row) => (row.score ? [number(row.score.value), row.erratum && erratum(row), within(row.score), row.score.most === null && el("small", {}, "n\u202f=\u202f" + row.n)] : blank) },
  ];
  if (c.rows.some((row) => row.failed)) found.push({ key: "failed", label: t("failed"), value: (row) => row.failed, numeric: true, cell: (row) => (row.failed === null ? blank : String(row.failed)) });
  for (const baseline of c.baselines) {
    found.push({ key: "loss." + baseline, label: t("loss", { baseline: conditionName(baseline) }), value: (row) => row.losses[baseline]?.order ?? null, numeric: true,
      cell: (row) => (row.losses[baseline] ? [number(row.losses[baseline].value), within(row.losses[baseline]), row.losses[baseline].relative !== null && el("small", {}, percent(row.losses[baseline].relative))] : blank) });
  }
  found.push(
    { key: "models", label: t("models"), value: (row) => modelText(row.system), cell: (row) => modelList(row.system) },
    { key: "parameters", label: t("parameters"), value: (row) => row.system.parameters, numeric: true, cell: (row) => count(row.system.parameters) },
    { key: "open", label: t("open"), value: (row) => (row.system.open === null || row.system.open === undefined ? null : row.system.open ? 0 : 1), cell: (row) => openText(row.system) },
    { key: "rtfx", label: t("rtfx"), value: (row) => row.rtfx ?? null, down: true, numeric: true, cell: (row) => short(row.rtfx) },
    { key: "memory", label: t("memory"), value: (row) => row.memory ?? null, numeric: true, cell: (row) => memory(row.memory) },
    { key: "date", label: t("date"), value: (row) => row.system.date || null, down: true, cell: (row) => row.system.date || blank },
    { key: "who", label: t("who"), value: (row) => whoName(row.who), cell: (row) => whoName(row.who) },
  );
  return found;
}
const modelText = (system) => (system.models || []).map((model) => model.name).join(" ");
const modelList = (system) => el("ul", { class: "model-list" }, (system.models || []).map((model) => el("li", {}, outside(model.link, model.name || model.role))));
const openText = (system) => (system.open === null || system.open === undefined ? blank : system.open ? t("yes") : t("no"));
const erratum = (row) => el("a", { href: address("system", [row.system.id]), class: "erratum", title: t("erratum.about", { text: row.erratum }) }, "† ", el("span", { class: "unseen" }, t("erratum")));

function sortRows(rows, columns, c) {
  const wanted = columns.find((column) => column.key === state.query.sort) || columns[0];
  const reverse = state.query.dir ? state.query.dir === "down" : Boolean(wanted.down);
  const compare = (a, b) => {
    const x = wanted.value(a), y = wanted.value(b);
    // What has no value comes last in both directions.
    if (x === null || y === null) return (x === null) - (y === null);
    const order = typeof x === "string" ? collator.compare(x, y) : x - y;
    return reverse ? -order : order;
  };
  const score = better(c);
  return { column: wanted, reverse, rows: [...rows].sort((a, b) => compare(a, b)
    || (a.score && b.score ? score(a.score.order, b.score.order) : (a.score ? 0 : 1) - (b.score ? 0 : 1)) || collator.compare(a.system.name, b.system.name)) };
}

function filtered(rows) {
  const q = state.query;
  const words = (q.q || "").toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const most = Number.parseFloat(q.max);
  return rows.filter((row) => {
    const text = (row.system.name + " " + modelText(row.system)).toLocaleLowerCase();
    return words.every((word) => text.includes(word)) && (!q.kind || row.system.kind === q.kind) && (!q.who || row.who === q.who)
      && (q.open !== "1" || row.system.open === true) && !(most >= 0 && !(row.system.parameters !== null && row.system.parameters <= most * 1e6));
  });
}

function filterBar(rows) {
  const option = (value, text, current) => el("option", { value, selected: value === (current || "") }, text);
  const select = (key, label, values, naming) => el("label", {}, t(label),
    el("select", { "data-focus": key, on: { change: (event) => change({ [key]: event.target.value, p: "" }) } },
      option("", t("any"), state.query[key]), values.map((value) => option(value, naming(value), state.query[key]))));
  const typed = (key, label, more) => el("label", {}, t(label), el("input", { value: more.type === "number" && !isFinite(state.query[key]) ? "" : state.query[key] || "", "data-focus": key, autocomplete: "off", ...more,
    on: { input: (event) => change({ [key]: event.target.value, p: "" }, true) } }));
  const active = ["q", "kind", "who", "open", "max"].some((key) => state.query[key]);
  return el("form", { class: "filters", role: "search", "aria-label": t("filters"), on: { submit: (event) => event.preventDefault() } },
    typed("q", "search", { type: "search", placeholder: t("search.hint") }),
    select("kind", "kind", unique(rows.map((row) => row.system.kind)).sort(), kindName),
    select("who", "who", unique(rows.map((row) => row.who)).sort(), whoName),
    typed("max", "max_parameters", { type: "number", min: 0, step: "any", inputmode: "decimal", class: "narrow" }),
    el("label", { class: "check" }, el("input", { type: "checkbox", checked: state.query.open === "1", "data-focus": "open",
      on: { change: (event) => change({ open: event.target.checked ? "1" : "", p: "" }) } }), " ", t("open.only")),
    active && el("button", { type: "button", "data-focus": "q", on: { click: () => change({ q: "", kind: "", who: "", open: "", max: "", p: "" }) } }, t("clear")));
}

function headCell(column, sorted) {
  const on = sorted.column === column;
  const natural = Boolean(column.down);
  const next = on ? !sorted.reverse : natural;
  return el("th", { scope: "col", class: column.numeric ? "num" : "", "aria-sort": on ? (sorted.reverse ? "descending" : "ascending") : "none" },
    el("button", { type: "button", class: "sort", "data-focus": "sort-" + column.key, "data-sort": column.key,
      on: { click: () => change({ sort: column.key === "rank" ? "" : column.key, dir: next === natural ? "" : next ? "down" : "up", p: "" }) } },
      column.label, el("span", { class: "arrow", "aria-hidden": "true" }, on ? (sorted.reverse ? "▼" : "▲") : "")));
}
function bodyRow(row, columns) {
  const id = row.system.id;
  return el("tr", { "data-id": id },
    columns.map((column) => el(column.head ? "th" : "td", { class: [column.key.split(".")[0], column.numeric ? "num" : "", column.main ? "main" : ""].join(" ").trim(), scope: column.head ? "row" : null }, column.cell(row))),
    el("td", {}, el("input", { type: "checkbox", checked: picks().includes(id), "aria-label": t("pick.system", { name: row.system.name }), "data-focus": "pick-" + id,
      on: { change: (event) => change({ pick: (event.target.checked ? [...picks(), id] : picks().filter((one) => one !== id)).join(",") }, true) } })));
}
function scroller(label, table) {
  return el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label }, table);
}
function pager(page, pages) {
  if (pages < 2) return null;
  const button = (label, to, off) => el("button", { type: "button", disabled: off, "data-focus": label, on: { click: () => change({ p: to === 1 ? "" : to }) } }, t(label));
  return el("nav", { class: "pager", "aria-label": t("pages") }, button("previous", page - 1, page === 1), el("span", {}, t("page", { page, pages })), button("next", page + 1, page === pages));
}
function pickBar() {
  const ids = picks();
  if (!ids.length) return null;
  return el("p", { class: "picked" }, t("picked", { n: ids.length }), " ",
    ids.length === 2 && el("a", { href: address("compare", ids) }, t("compare.picked")), " ", el("a", { href: address("curves") }, t("curves.picked")), " ",
    el("button", { type: "button", on: { click: () => change({ pick: "" }, true) } }, t("clear")));
}

function tableView(c) {
  const own = c.rows.filter((row) => row.score || Object.values(row.losses).some(Boolean));
  const columns = columnsOf(c);
  const inTable = own.filter(inOrder);
  const found = filtered(inTable);
  const sorted = sortRows(found, columns, c);
  const pages = Math.max(1, Math.ceil(found.length / pageSize));
  const page = Math.min(pages, Math.max(1, Number.parseInt(state.query.p || "1", 10) || 1));
  const visible = sorted.rows.slice((page - 1) * pageSize, page * pageSize);
  const positions = visible.some((row) => { const own = c.by ? row.losses[c.by] : row.score; return own && own.position !== null && own.rank === null; });
  const words = wordsOf(c);
  const heading = caption(el("b", {}, words), " (" + t(c.lower ? "caption.down" : "caption.up") + "). ", t("caption.note"), positions && [" ", t("caption.position")],
    own.some((row) => [row.score, ...Object.values(row.losses)].some((one) => one && one.most !== null)) && [" ", t("caption.failed")]);
  const apart = own.filter((row) => row.partial && row.system.ranked);
  const outsideRows = own.filter((row) => !row.system.ranked);
  const side = [
    apart.length > 0 && el("section", { id: "partial" }, el("h2", {}, t("partial")), el("p", { class: "note" }, t("partial.note")), sideTable(apart, c, t("partial"))),
    outsideRows.length > 0 && el("section", { id: "outside" }, el("h2", {}, t("outside")), el("p", { class: "note" }, t("outside.note")), sideTable(outsideRows, c, t("outside"))),
  ];
  if (!inTable.length) return side;
  return [
    filterBar(own),
    el("p", { role: "status", class: "note" }, t("status", { shown: found.length, n: inTable.length }) + ", " + t("status.sorted", { column: sorted.column.label })),
    pickBar(),
    visible.length ? scroller(words, el("table", { class: "ranking" }, heading,
      el("thead", {}, el("tr", {}, columns.map((column) => headCell(column, sorted)), el("th", { scope: "col" }, t("pick")))),
      el("tbody", {}, visible.map((row) => bodyRow(row, columns))))) : el("p", {}, t("nothing")),
    pager(page, pages),
    downloads(sorted.rows, c),
    side,
  ];
}
function sideTable(rows, c, label) {
  const sorted = [...rows].sort((a, b) => collator.compare(a.system.name, b.system.name)).slice(0, 4 * pageSize);
  return scroller(label, el("table", { class: "side" }, caption(wordsOf(c)),
    el("thead", {}, el("tr", {}, [t("system"), metricName(c.metric), ...c.baselines.map((one) => t("loss", { baseline: conditionName(one) })), t("coverage"), t("date"), t("note")].map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, sorted.map((row) => el("tr", { "data-id": row.system.id }, el("th", { scope: "row" }, systemLink(row.system), " ", badge(row)),
      el("td", { class: "num" }, number(row.score?.value), row.erratum && erratum(row), within(row.score)),
      c.baselines.map((one) => el("td", { class: "num" }, number(row.losses[one]?.value), within(row.losses[one]))),
      el("td", { class: "num" }, row.total ? row.n_of + " / " + row.total : blank), el("td", {}, row.system.date || blank), el("td", { class: "wide" }, (row.system.notes || []).join(" ")))))));
}

// Downloads: the rows in their order, with full names.
function plainRows(rows, c) {
  return rows.map((row) => {
    const found = {
      position: row.score?.position ?? "", rank: row.score?.rank ?? "", rank_low: row.score?.best ?? "", rank_high: row.score?.worst ?? "", system: row.system.name, id: row.system.id, kind: row.system.kind,
      benchmark: data.groups[c.group].benchmark, benchmark_version: data.groups[c.group].version, source: data.groups[c.group].source || "",
      language: c.language, subset: c.subset, condition: c.condition, metric: c.metric,
      value: row.score?.value ?? "", low: row.score?.low ?? "", high: row.score?.high ?? "", n: row.n,
      failed: row.failed ?? "", with_failed_low: row.score?.least ?? "", with_failed_high: row.score?.most ?? "",
    };
    for (const baseline of c.baselines) {
      found["loss_" + baseline] = row.losses[baseline]?.value ?? "";
      found["relative_loss_" + baseline] = row.losses[baseline]?.relative ?? "";
    }
    return Object.assign(found, { models: modelText(row.system), parameters: row.system.parameters ?? "", open_weights: row.system.open ?? "", rtfx: row.rtfx ?? "",
      memory_mb: row.memory ?? "", date: row.system.date || "", who: row.who, normalizer: row.normalizer, self_check: ((row.system.configs || {})[row.config] || {}).self_check || "", erratum: row.erratum });
  });
}
function csvField(value) {
  let text = String(value);
  // A spreadsheet would run a text that starts like a formula.
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text;
  return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}
function asCsv(rows) {
  if (!rows.length) return "";
  const names = Object.keys(rows[0]);
  return [names, ...rows.map((row) => names.map((one) => row[one]))].map((line) => line.map(csvField).join(",")).join("\n") + "\n";
}
function save(fileName, content, type) {
  const link = el("a", { href: URL.createObjectURL(new Blob([content], { type })), download: fileName });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
function downloads(rows, c) {
  const stem = ["leaderboard", c.subset || c.language, c.condition, c.metric].map((part) => part.replace(/[^\w.-]+/g, "-")).join("_");
  const button = (label, run) => el("button", { type: "button", "data-focus": label, on: { click: run } }, t(label));
  return el("p", { class: "downloads" }, el("span", {}, t("download") + ": "),
    button("download.csv", () => save(stem + ".csv", asCsv(plainRows(rows, c)), "text/csv")),
    button("download.json", () => save(stem + ".json", JSON.stringify(plainRows(rows, c), null, 1), "application/json")),
    ["csv", "parquet"].map((format) => el("a", { href: "leaderboard." + format, download: true }, t("download.all", { format: format === "parquet" ? "Parquet" : "CSV" }))));
}
