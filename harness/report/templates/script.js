"use strict";
(function () {
  // The theme: what the system prefers, until the reader chooses.
  var root = document.documentElement, button = document.getElementById("theme"), key = "squtr-report-theme";
  var prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  function stored() { try { return localStorage.getItem(key); } catch (e) { return null; } }
  function dark() { return root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches; }
  function name() { button.textContent = dark() ? "Light" : "Dark"; button.setAttribute("aria-label", "Use the " + button.textContent.toLowerCase() + " theme"); }
  if (stored() === "dark" || stored() === "light") { root.dataset.theme = stored(); }
  button.hidden = false;
  name();
  prefersDark.addEventListener("change", name);
  button.addEventListener("click", function () {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem(key, root.dataset.theme); } catch (e) { /* A page from a file may have no storage: the choice lasts until it closes. */ }
    name();
  });

  // The worst queries by system and condition.
  document.querySelectorAll("form.filter").forEach(function (form) {
    var cases = Array.from(document.getElementById(form.dataset.list).children);
    var most = Number(form.dataset.most), output = form.querySelector("output");
    function apply() {
      var system = form.elements.system.value, condition = form.elements.condition.value, shown = 0;
      cases.forEach(function (element) {
        var fits = (!system || element.dataset.system === system) && (!condition || element.dataset.condition === condition);
        element.hidden = !fits || shown >= most;
        if (!element.hidden) { shown += 1; }
      });
      output.textContent = shown + " shown";
    }
    form.hidden = false;
    form.addEventListener("change", apply);
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.reset();
    apply();
  });

  // One clip at a time.
  document.addEventListener("play", function (event) {
    document.querySelectorAll("audio").forEach(function (audio) { if (audio !== event.target) { audio.pause(); } });
  }, true);

  // Paper cannot unfold.
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll(".cases details:not([hidden])").forEach(function (element) { element.open = true; });
  });
})();
