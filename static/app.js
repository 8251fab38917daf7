// What needs a script and cannot be done without: the clipboard, and forgetting
// a secret. Everything else works as plain links and forms.

// Copy buttons are rendered hidden, so nobody meets a button that does nothing.
// Browsers offer the clipboard only on https and on localhost.
function offerCopies(root) {
  if (!navigator.clipboard) return;
  for (const button of root.querySelectorAll("button[data-copy]")) button.hidden = false;
}

const labels = new WeakMap();

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  if (!labels.has(button)) labels.set(button, button.textContent);
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch {
    // Permission refused: select the text, so that one key press copies it.
    getSelection().selectAllChildren(source);
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = labels.get(button); }, 2000);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-copy]");
  if (button) copy(button);
});

offerCopies(document);
document.addEventListener("htmx:load", (event) => offerCopies(event.target));

// "/" goes to the page's search, unless it is typed into a field.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const field = document.querySelector('input[aria-keyshortcuts="/"]');
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
});

// A browser keeps the page that was left, to show it again on Back. A secret that
// is shown once must not be in it.
addEventListener("pagehide", () => {
  for (const secret of document.querySelectorAll("[data-once]")) secret.remove();
});
