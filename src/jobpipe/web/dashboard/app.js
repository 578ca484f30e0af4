// The dashboard: the frame around the pages, which of them is shown, and when it is drawn.

import { forgetToken, get, hasToken } from "./api.js";
import { apiUrl } from "./base.js";
import { h, patch } from "./dom.js";
import { hurry, live } from "./live.js";
import { failedPage } from "./page_failed.js";
import { jobPage } from "./page_job.js";
import { jobsPage } from "./page_jobs.js";
import { limitsPage } from "./page_limits.js";
import { missingPage } from "./page_missing.js";
import { overviewPage } from "./page_overview.js";
import { schedulesPage } from "./page_schedules.js";
import { workersPage } from "./page_workers.js";
import { Router } from "./router.js";
import { on, setPast, state } from "./store.js";

const ROUTES = [
  [/^$/, overviewPage],
  [/^ui\/jobs$/, jobsPage],
  [/^ui\/jobs\/([^/]+)$/, jobPage],
  [/^ui\/failed$/, failedPage],
  [/^ui\/schedules$/, schedulesPage],
  [/^ui\/limits$/, limitsPage],
  [/^ui\/workers$/, workersPage],
];
const LOST_AFTER = 1500; // milliseconds until a lost connection is worth a word: most come back at once
const main = document.getElementById("main");

const plot = { width: 720 }; // of the one chart of a page

let shown = null;
let frame = 0;
let isPressed = false; // Why: what moves between the press and the release of a button takes the click with it

const sizes = new ResizeObserver((entries) => {
  const width = Math.floor(entries.at(-1).contentRect.width);
  if (!width || width === plot.width) return;
  plot.width = width;
  redraw();
});

function draw() {
  patch(main, shown.view());
  const node = main.querySelector(".plot");
  if (node) sizes.observe(node);
}

function redraw() {
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    if (shown && !isPressed) draw();
  });
}

addEventListener("pointerdown", () => (isPressed = true), true);
for (const kind of ["pointerup", "pointercancel", "blur"]) {
  addEventListener(
    kind,
    () =>
      setTimeout(() => {
        isPressed = false;
        redraw();
      }),
    true,
  );
}

function show(page, parameters, query) {
  const isFirst = shown === null;
  shown?.stop();
  shown = page({ parameters, query, plot, redraw, visit: (href, options) => router.visit(href, options) });
  document.title = `${shown.title} · jobpipe`;
  for (const anchor of document.querySelectorAll("#nav a")) {
    if (anchor.dataset.page === shown.nav) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  draw();
  // Why: whoever cannot see that the page has changed is told by the focus.
  if (!isFirst) main.querySelector("h1")?.focus({ preventScroll: true });
}

const router = new Router(ROUTES, missingPage, show);

function showConnection() {
  const { is, since } = state.connection;
  const isLost = is === "lost" && Date.now() - since > LOST_AFTER;
  const words = { live: "Live", connecting: "Connecting", lost: isLost ? "Connection lost" : "Reconnecting" };
  document.documentElement.dataset.connection = isLost ? "lost" : is;
  patch(document.getElementById("connection"), h("span", { class: "pulse", "aria-hidden": "true" }), h("span", { class: "word" }, words[is]));
  patch(
    document.getElementById("banner"),
    isLost
      ? h(
          "div",
          { class: "banner" },
          h("span", null, "The connection to the service is lost, reconnecting. What you see may be out of date."),
          h("button", { type: "button", onclick: hurry }, "Try now"),
        )
      : null,
  );
  document.getElementById("forget").hidden = !hasToken();
}

async function renew() {
  try {
    setPast(await get("stats/history"));
  } catch {
    // The pulses will bring it.
  }
  redraw();
}

// Why: as they stand in the document, they are relative to the address at which it was loaded.
for (const node of document.querySelectorAll("header a, link")) node.setAttribute("href", new URL(node.href).pathname);
document.getElementById("forget").addEventListener("click", () => {
  forgetToken();
  location.reload();
});
on("renew", renew);
on("connection", showConnection);
on("pulse", redraw);
setInterval(() => {
  redraw(); // times go on, also where nothing happens
  showConnection();
}, 1000);

async function loadMeta() {
  for (;;) {
    try {
      return await (await fetch(apiUrl("ui/meta.json"))).json();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 1000)); // the service was there a moment ago
    }
  }
}

state.meta = await loadMeta();
document.getElementById("version").textContent = state.meta.version;
showConnection();
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, select, textarea, dialog");
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    const field = document.getElementById("search");
    if (field) field.focus();
    else router.visit(document.querySelector('#nav a[data-page="jobs"]').getAttribute("href"));
    document.getElementById("search")?.focus();
  }
});

router.start();
live();
