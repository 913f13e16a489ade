// The frame: navigation, what is chosen, language and theme; and the drawing of a view.
const views = { table: tableView, curves: curvesView, speed: speedView, heat: heatView, robustness: robustnessView, compare: compareView, about: aboutView };
const siteName = document.title;
const root = document.documentElement, content = document.getElementById("content"), frameTop = document.getElementById("frame");
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);

function chooseUi() {
  const wanted = [state.query.ui, stored.get("ui"), ...(navigator.languages || []).map((code) => code.slice(0, 2))];
  ui = wanted.find((code) => strings[code]) || "en";
  root.lang = ui;
}
function choiceBar(c) {
  const field = (label, key, values, current, naming, changes) => el("label", { class: "field" }, t(label), el("select", { "data-focus": "choice-" + key, "data-choice": key, disabled: values.length < 2,
    on: { change: (event) => change({ [key]: event.target.value, p: "", ...(changes || {}) }) } }, values.map((value) => el("option", { value, selected: value === current }, naming(value)))));
  return el("form", { class: "choices", "aria-label": t("choose"), on: { submit: (event) => event.preventDefault() } },
    field("benchmark", "b", data.groups.map((one) => one.id), data.groups[c.group].id, (id) => groupName(data.groups.find((one) => one.id === id))),
    field("lang", "lang", c.languages, c.language, languageName, { sub: "" }),
    c.subsets.length > 1 && field("subset", "sub", c.subsets, c.subset, (one) => one || t("subset.all")),
    !["curves"].includes(state.view) && field("condition", "cond", c.conditions, c.condition, conditionChoice),
    field("metric", "m", c.metrics, c.metric, metricName),
    c.normalizers.length > 1 && field("normalizer", "norm", c.normalizers, c.normalizer, (one) => one || blank),
    ["table", "robustness"].includes(state.view) && c.baselines.length > 0 && field("by", "by", state.view === "table" ? ["", ...c.baselines] : c.baselines, c.by || (state.view === "table" ? "" : c.baselines.find(isClean)), (one) => (one ? t("by.loss", { baseline: conditionName(one) }) : t("by.score"))));
}
function topBar() {
  const languages = el("label", { class: "ui" }, el("span", { class: "unseen" }, t("language")), el("select", { id: "ui", "data-focus": "ui",
    on: { change: (event) => { stored.set("ui", event.target.value); change({ ui: event.target.value }); } } }, Object.keys(strings).map((code) => el("option", { value: code, lang: code, selected: code === ui }, strings[code].name))));
  const theme = el("button", { type: "button", id: "theme", "data-focus": "theme", "aria-label": t(isDark() ? "theme.use_light" : "theme.use_dark"),
    on: { click: () => { root.dataset.theme = isDark() ? "light" : "dark"; stored.set("theme", root.dataset.theme); render(); } } }, t(isDark() ? "theme.light" : "theme.dark"));
  return [el("a", { class: "skip", href: "#content", on: { click: (event) => { event.preventDefault(); content.focus(); } } }, t("skip")),
    el("div", { class: "bar" }, el("nav", { "aria-label": t("views") }, Object.keys(views).map((view) => el("a", { href: address(view, view === "compare" ? picks().slice(0, 2) : []), "aria-current": view === state.view ? "page" : null, "data-focus": "view-" + view }, t("view." + view)))),
      el("div", { class: "tools" }, languages, theme))];
}
function footer() {
  return el("footer", {}, data.updated && el("span", {}, t("updated", { date: data.updated })), data.results.name && el("span", {}, data.results.url ? outside(data.results.url, t("source_repo", { name: data.results.name })) : t("source_repo", { name: data.results.name })), el("span", {}, "squtr " + data.squtr), el("span", {}, t("about.private")));
}
function viewContent() {
  if (!data.groups.length) return [el("h1", {}, t("title")), el("p", {}, t("no_results"))];
  if (state.view === "system") return systemView(state.path[0] || "");
  const intro = [el("h1", { tabindex: "-1" }, siteName), el("p", { class: "sub" }, t("tagline"))];
  if (!Object.hasOwn(views, state.view)) return [intro, el("p", {}, t("not_found")), el("p", {}, el("a", { href: address("table") }, t("to_ranking")))];
  const c = chosen();
  const { title, name: short } = data.groups[c.group];
  return [intro, state.view !== "about" && [choiceBar(c), title !== short && el("p", { class: "note" }, title)], views[state.view](c)];
}
let shown = null;
function render() {
  chooseUi();
  // What had the focus has it again, with the cursor where it was.
  const active = document.activeElement, focus = active && active.dataset ? active.dataset.focus : undefined, cursor = active && active.selectionStart;
  const scrolled = [...document.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
  frameTop.replaceChildren(...topBar());
  content.replaceChildren(...[viewContent(), footer()].flat(Infinity).filter(Boolean));
  const title = siteName;
  const here = state.view === "system" && systemAt.has(state.path[0]) ? data.systems[systemAt.get(state.path[0])].name : known("view." + state.view, "");
  document.title = here ? here + " · " + title : title;
  const same = shown === state.view + "/" + (state.view === "system" ? state.path[0] : "");
  const again = focus && [...document.querySelectorAll("[data-focus]")].find((one) => one.dataset.focus === focus);
  if (again) {
    again.focus({ preventScroll: same });
    if (typeof cursor === "number" && again.type !== "number") { try { again.setSelectionRange(cursor, cursor); } catch (e) { /* Not every field has a cursor. */ } }
  } else if (shown !== null && !same) content.focus({ preventScroll: true });
  if (same) [...document.querySelectorAll(".scroll")].forEach((box, at) => { box.scrollLeft = scrolled[at] || 0; });
  else if (shown !== null) window.scrollTo(0, 0);
  shown = state.view + "/" + (state.view === "system" ? state.path[0] : "");
}
let drawnWidth = root.clientWidth;
window.addEventListener("resize", () => { if (Math.abs(root.clientWidth - drawnWidth) > 20) { drawnWidth = root.clientWidth; render(); } });
prefersDark.addEventListener("change", render);
window.addEventListener("hashchange", () => { readAddress(); render(); });
if (["dark", "light"].includes(stored.get("theme"))) root.dataset.theme = stored.get("theme");
readAddress();
render();
root.dataset.ready = String(Math.round(performance.now()));
