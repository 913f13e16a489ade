"use strict";
(() => {
  const cards = [...document.querySelectorAll("article")];
  const data = JSON.parse(document.getElementById("data").textContent);
  const key = "squtr-review:" + data.page;
  const count = document.getElementById("count");
  const filter = document.getElementById("filter");

  // What a browser keeps for this page wins over what the folder had: it is newer.
  let marks = data.marks;
  try {
    marks = { ...marks, ...JSON.parse(localStorage.getItem(key) || "{}") };
  } catch (error) {
    console.warn("the browser keeps no marks for this page", error);
  }

  const keep = () => {
    try {
      localStorage.setItem(key, JSON.stringify(marks));
    } catch (error) {
      document.getElementById("unkept").hidden = false;
    }
  };
  const of = (card) => marks[card.dataset.key] || { mark: "", comment: "" };

  const show = (card) => {
    const { mark, comment } = of(card);
    card.dataset.mark = mark;
    for (const button of card.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.value === mark));
    }
    const input = card.querySelector("input");
    if (input.value !== comment) input.value = comment;
  };
  const total = () => {
    const done = cards.filter((card) => of(card).mark);
    const bad = done.filter((card) => of(card).mark === "reject").length;
    count.textContent = `${done.length} of ${cards.length} marked, ${bad} rejected`;
  };
  const set = (card, change) => {
    marks[card.dataset.key] = { ...of(card), ...change };
    show(card);
    keep();
    total();
  };
  const toggle = (card, mark) => set(card, { mark: of(card).mark === mark ? "" : mark });

  const visible = () => cards.filter((card) => !card.hidden);
  const apply = () => {
    const wanted = filter.value;
    for (const card of cards) {
      card.hidden = !(wanted === "all" || card.dataset.status === wanted || (wanted === "unmarked" && !of(card).mark));
    }
  };
  const step = (by) => {
    const shown = visible();
    if (!shown.length) return;
    const at = shown.indexOf(document.activeElement.closest("article"));
    const next = shown[at < 0 ? 0 : Math.min(shown.length - 1, Math.max(0, at + by))];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  };
  const play = (card) => {
    const player = card.querySelector("audio");
    if (!player) return;
    if (!player.paused) {
      player.pause();
      return;
    }
    for (const other of document.querySelectorAll("audio")) if (other !== player) other.pause();
    player.currentTime = 0;
    player.play();
  };

  for (const card of cards) {
    show(card);
    for (const button of card.querySelectorAll("button")) {
      button.addEventListener("click", () => toggle(card, button.value));
    }
    card.querySelector("input").addEventListener("input", (event) => set(card, { comment: event.target.value }));
  }
  filter.addEventListener("change", apply);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const tag = event.target.tagName;
    if (tag === "INPUT" || tag === "SELECT" || ((tag === "BUTTON" || tag === "AUDIO") && event.key === " ")) return;
    const card = event.target.closest("article");
    const actions = {
      j: () => step(1), k: () => step(-1),
      a: () => card && toggle(card, "accept"), r: () => card && toggle(card, "reject"),
      " ": () => card && play(card), c: () => card && card.querySelector("input").focus(),
    };
    const action = actions[event.key];
    if (action && (card || event.key === "j" || event.key === "k")) {
      event.preventDefault();
      action();
    }
  });
  document.getElementById("save").addEventListener("click", () => {
    const list = cards.filter((card) => of(card).mark || of(card).comment).map((card) => ({
      _id: card.dataset.id, subset: card.dataset.subset, sha256: card.dataset.sha256, ...of(card),
    }));
    const content = JSON.stringify({ schema: data.schema, marks: list }, null, 1);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type: "application/json" }));
    link.download = "marks.json";
    link.click();
    URL.revokeObjectURL(link.href);
  });
  total();
})();
