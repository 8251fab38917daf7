// Copy buttons: the one thing that needs a script. They are rendered hidden, so
// nobody meets a button that does nothing. Browsers offer the clipboard only on
// https and on localhost.
if (navigator.clipboard) {
  for (const button of document.querySelectorAll("button[data-copy]")) {
    const label = button.textContent;
    let reset;
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
      } catch {
        // Permission refused: select the text, so that one key press copies it.
        getSelection().selectAllChildren(source);
        button.textContent = "Selected";
      }
      clearTimeout(reset);
      reset = setTimeout(() => { button.textContent = label; }, 2000);
    });
    button.hidden = false;
  }
}
