"use strict";
(() => {
  const cards = [...document.querySelectorAll("article")];
  const data = JSON.parse(document.getElementById("data").textContent);
  const key = "squtr-questions:" + data.set;
  const count = document.getElementById("count");
  const filter = document.getElementById("filter");
  const blank = { reply: "", revealed: false, mark: "", answer: "", comment: "" };

  let notes = {};
  try {
    notes = JSON.parse(localStorage.getItem(key) || "{}");
  } catch (error) {
    console.warn("the browser keeps nothing for this page", error);
  }
  const of = (card) => ({ ...blank, ...notes[card.dataset.id] });
  const keep = () => {
    try {
      localStorage.setItem(key, JSON.stringify(notes));
    } catch (error) {
      document.getElementById("unkept").hidden = false;
    }
  };

  const show = (card) => {
    const note = of(card);
    card.dataset.mark = note.mark;
    for (const box of card.querySelectorAll("input[type=radio]")) {
      box.checked = box.value === note.reply;
      // A reply counts as a person's own only if the key was not seen before.
      box.disabled = note.revealed;
    }
    const area = card.querySelector("textarea");
    if (area && area.value !== note.reply) area.value = note.reply;
    if (area) area.disabled = note.revealed;
    card.querySelector(".key").hidden = !note.revealed;
    card.querySelector("button[value=reveal]").disabled = note.revealed;
    for (const button of card.querySelectorAll("button[aria-pressed]")) {
      button.setAttribute("aria-pressed", String(button.value === note.mark));
    }
    const comment = card.querySelector("input[type=text]");
    if (comment.value !== note.comment) comment.value = note.comment;
    const select = card.querySelector("select");
    if (select) select.value = note.answer;
  };
  const total = () => {
    const answered = cards.filter((card) => of(card).reply).length;
    const marked = cards.filter((card) => of(card).mark || of(card).answer).length;
    count.textContent = `${answered} de ${cards.length} contestadas, ${marked} revisadas`;
  };
  const set = (card, change) => {
    notes[card.dataset.id] = { ...of(card), ...change };
    show(card);
    keep();
    total();
  };

  for (const card of cards) {
    show(card);
    for (const box of card.querySelectorAll("input[type=radio]")) {
      box.addEventListener("change", () => set(card, { reply: box.value }));
    }
    const area = card.querySelector("textarea");
    if (area) area.addEventListener("input", () => set(card, { reply: area.value }));
    card.querySelector("button[value=reveal]").addEventListener("click", () => set(card, { revealed: true }));
    for (const button of card.querySelectorAll("button[aria-pressed]")) {
      button.addEventListener("click", () => set(card, { mark: of(card).mark === button.value ? "" : button.value }));
    }
    card.querySelector("input[type=text]").addEventListener("input", (event) => set(card, { comment: event.target.value }));
    const select = card.querySelector("select");
    if (select) select.addEventListener("change", () => set(card, { answer: select.value }));
    for (const player of card.querySelectorAll("audio")) {
      player.addEventListener("play", () => {
        for (const other of document.querySelectorAll("audio")) if (other !== player) other.pause();
      });
    }
  }
  filter.addEventListener("change", () => {
    for (const card of cards) {
      const note = of(card);
      const wanted = { all: true, open: !note.reply, reject: note.mark === "reject" || Boolean(note.answer) };
      card.hidden = !wanted[filter.value];
    }
  });
  document.getElementById("save").addEventListener("click", () => {
    const items = cards.filter((card) => notes[card.dataset.id]).map((card) => ({ id: card.dataset.id, ...of(card) }));
    const content = JSON.stringify({ schema: data.schema, set: data.set, items }, null, 1);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type: "application/json" }));
    link.download = "questions-review.json";
    link.click();
    URL.revokeObjectURL(link.href);
  });
  total();
})();
