"use strict";
(() => {
  const told = document.getElementById("told");
  const slices = [...document.querySelectorAll(".slice")];
  const rowsOf = slice => [...slice.querySelectorAll("tbody tr")];
  const depthOf = row => Number(row.dataset.d);
  const foldOf = row => row.querySelector(".fold");

  function show(slice) {
    const open = [];
    for (const row of rowsOf(slice)) {
      const depth = depthOf(row);
      const above = open.slice(0, depth);
      row.hidden = above.includes(false);
      const fold = foldOf(row);
      open[depth] = fold ? fold.getAttribute("aria-expanded") === "true" : true;
      open.length = depth + 1;
    }
  }
  function toDepth(slice, depth) {
    for (const row of rowsOf(slice)) {
      const fold = foldOf(row);
      if (fold) set(fold, depthOf(row) < depth);
    }
    show(slice);
  }
  const words = document.querySelector("main").dataset;
  function set(fold, open) {
    const [now, next] = fold.getAttribute("aria-expanded") === "true" ? [words.fold, words.unfold] : [words.unfold, words.fold];
    const code = fold.getAttribute("aria-label").slice(now.length);
    const same = open === (fold.getAttribute("aria-expanded") === "true");
    fold.setAttribute("aria-expanded", String(open));
    fold.setAttribute("aria-label", (same ? now : next) + code);
  }
  for (const slice of slices) {
    toDepth(slice, Number(slice.dataset.open));
    for (const row of rowsOf(slice)) if (row.dataset.w && foldOf(row)) set(foldOf(row), true);
    show(slice);
    slice.addEventListener("click", event => {
      const fold = event.target.closest(".fold");
      if (!fold) return;
      set(fold, fold.getAttribute("aria-expanded") !== "true");
      show(slice);
    });
    const first = slice.querySelector("td");
    if (first) first.tabIndex = 0;
    slice.addEventListener("keydown", event => move(slice, event));
    slice.addEventListener("focusin", event => tell(event.target.closest("td")));
    slice.addEventListener("click", event => { const cell = event.target.closest("td"); if (cell) focus(slice, cell); });
  }
  function tell(cell) {
    const text = cell ? cell.title : "";
    told.textContent = text;
    told.hidden = !text;
  }
  function focus(slice, cell) {
    for (const other of slice.querySelectorAll('td[tabindex="0"]')) other.tabIndex = -1;
    cell.tabIndex = 0;
    cell.focus();
  }
  function move(slice, event) {
    const cell = event.target.closest("td");
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!cell || !step) return;
    event.preventDefault();
    const rows = rowsOf(slice).filter(row => !row.hidden);
    const row = rows[rows.indexOf(cell.parentElement) + step[0]];
    const next = row && row.cells[cell.cellIndex + step[1]];
    if (next && next.tagName === "TD") focus(slice, next);
  }
  for (const button of document.querySelectorAll("button[data-fold]"))
    button.addEventListener("click", () => {
      for (const slice of slices) toDepth(slice, button.dataset.fold === "all" ? Infinity : Number(button.dataset.fold));
    });
  const find = document.getElementById("find");
  if (find) find.addEventListener("input", () => {
    const wanted = find.value.trim().toLowerCase();
    for (const slice of slices) {
      if (!wanted) { show(slice); continue; }
      for (const row of rowsOf(slice)) row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    }
  });
  const choice = document.getElementById("slice");
  if (choice) {
    const pick = () => slices.forEach((slice, i) => { slice.hidden = i !== Number(choice.value); });
    choice.addEventListener("change", pick);
    pick();
  }
})();
