// "?" shows what keys do, wherever nothing is being written.
document.addEventListener("keydown", (e) => {
  if (e.key !== "?" || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.target.closest("input, textarea, select, [contenteditable=true]")) return;
  const button = document.querySelector(".ts-keys");
  if (!button) return;
  e.preventDefault();
  button.click();
});
