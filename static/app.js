// What needs a script and cannot be done without: the clipboard, forgetting a secret,
// forms that are sent once, rows that are links as a whole, and times and days in the
// visitor's zone. Everything else works as plain links and forms.

// Copy buttons are rendered hidden, so that every shown button works.
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

// A click beside the links of a row opens the row's own page. One that selects text
// does not.
document.addEventListener("click", (event) => {
  const row = event.target.closest(".table tbody tr");
  if (!row || event.defaultPrevented || event.target.closest("a, button, input, select, label, summary")) return;
  const link = row.querySelector("a[data-row]") ?? row.querySelector("th a");
  if (!link || !getSelection().isCollapsed) return;
  if (event.ctrlKey || event.metaKey) open(link.href, "_blank", "noopener");
  else link.click();
});

// A live filter that failed says so above the list, until one succeeds.
const failedFilter = document.createElement("p");
failedFilter.className = "field-error";
failedFilter.role = "alert";

function reportFilter(event) {
  if (!event.detail.elt.matches("form[role=search]")) return;
  failedFilter.textContent = "";
  event.detail.target.before(failedFilter);
  failedFilter.textContent = "Couldn't update the list. Try again.";
}

for (const kind of ["htmx:timeout", "htmx:sendError", "htmx:responseError"]) document.addEventListener(kind, reportFilter);
document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.successful) failedFilter.remove(); });

offerCopies(document);
document.addEventListener("htmx:load", (event) => offerCopies(event.target));

// The search of an application is a page; the script shows it as a dialog over any page.
// Ctrl-K, "/" or its link opens it, arrows go through what was found.
const palette = document.getElementById("palette");

function openPalette() {
  if (!palette.open) palette.showModal();
  const field = document.getElementById("palette-field");
  field.select();
  if (!palette.querySelector("#palette-hits > *")) htmx.trigger(field, "input");
}

function movePalette(step) {
  const stops = [document.getElementById("palette-field"), ...palette.querySelectorAll("#palette-hits a")];
  const at = stops.indexOf(document.activeElement);
  stops[(at + step + stops.length) % stops.length].focus();
}

if (palette) {
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-palette]") && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      openPalette();
    } else if (event.target === palette || event.target.closest("[data-close-palette]")) palette.close();
  });
  palette.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    movePalette(step);
  });
}

document.addEventListener("keydown", (event) => {
  if (palette && event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
    event.preventDefault();
    openPalette();
  }
});

// "/" goes to the search, unless it is typed into a field.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  if (palette) {
    event.preventDefault();
    openPalette();
    return;
  }
  const field = document.querySelector('input[aria-keyshortcuts="/"]');
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
});

// Where the navigation scrolls, the page's own entry is in sight.
document.querySelector(".sidebar .nav [aria-current]")?.scrollIntoView({ block: "nearest" });

// A switcher that was opened closes with Escape, and with a click beside it.
function closeSwitch(except) {
  for (const menu of document.querySelectorAll(".switch[open]")) {
    if (menu.contains(except)) continue;
    menu.open = false;
    if (!except) menu.querySelector("summary").focus();
  }
}

document.addEventListener("click", (event) => closeSwitch(event.target));
document.addEventListener("keydown", (event) => { if (event.key === "Escape") closeSwitch(null); });

// A message leaves some seconds after the visitor has come back to the page, unless they
// point at it or focus it. Without a script it stays.
const flashTime = 8000;
for (const flash of document.querySelectorAll(".flash")) {
  let started = false;
  const leave = () => setTimeout(() => { if (flash.matches(":hover, :focus-within")) leave(); else flash.remove(); }, flashTime);
  const start = () => {
    if (!started) leave();
    started = true;
  };
  for (const kind of ["pointermove", "keydown", "scroll"]) document.addEventListener(kind, start, { once: true, passive: true });
}

// Times are rendered in UTC. The script shows them in the visitor's zone, and the title
// keeps UTC.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const clock = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short" };

const inUTC = ["UTC", "Etc/UTC", "GMT", "Etc/GMT"].includes(zone);

function localize(root) {
  if (inUTC) return;
  for (const time of root.querySelectorAll("time[data-zoned]")) {
    const format = time.dataset.zoned === "seconds" ? { ...clock, second: "2-digit" } : clock;
    const text = new Intl.DateTimeFormat("en-GB", format).format(new Date(time.dateTime));
    // The day and the time of day of a log are two lines where room is short.
    const lines = time.querySelectorAll("span");
    if (lines.length !== 2) time.textContent = text;
    else [lines[0].textContent, lines[1].textContent] = [text.slice(0, text.indexOf(",") + 1), text.slice(text.indexOf(",") + 2)];
    delete time.dataset.zoned;
  }
}

localize(document);
document.addEventListener("htmx:load", (event) => localize(event.target));

// The server counts days in the visitor's zone where they filter by day, and charts usage
// in it. The documentation has no days and sets no cookie.
if (!document.querySelector(".docs-columns")) {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `zone=${inUTC ? "" : zone}; Path=/; Max-Age=${inUTC ? 0 : 31536000}; SameSite=Lax${secure}`;
}

// A double click sends a form once: the second response would replace the first, which may
// show a secret. A request that was stopped tells no event, so a form can be sent again after
// some seconds, and after Back.
const sendingTime = 10_000;
let sentAt = new WeakMap();
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.method !== "post") return;
  const now = performance.now();
  if (now - sentAt.get(event.target) < sendingTime) event.preventDefault();
  else sentAt.set(event.target, now);
});
addEventListener("pageshow", () => { sentAt = new WeakMap(); });

// A browser keeps the page that was left, to show it again on Back. A secret that
// is shown once must not be in it.
addEventListener("pagehide", () => {
  for (const secret of document.querySelectorAll("[data-once]")) secret.remove();
});
