// Limits: what each lets through, and who has to wait for it until when; in a table that can be searched and turned over.

import { get } from "./api.js";
import { h } from "./dom.js";
import { count, number, percent } from "./format.js";
import { code, empty, failure, jobLink, jobsLink, meter } from "./parts.js";
import { Resource } from "./resource.js";
import { now, on } from "./store.js";
import { when } from "./time.js";

const HOLDERS = 3; // that are shown of a limit
const PAGE = 50; // rows
const EXAMPLE = `@pipe.job("email", rate="5/s", concurrency=2)
async def send_email(mail): ...`;
const COLUMNS = ["Limit", "State", "Rate", "Tokens left", "Concurrency", "Queued", "Next start", "Held by"];

export function limitsPage({ redraw }) {
  const limits = new Resource(() => get("limits"), redraw, 1000);
  const renew = () => limits.error?.status === 404 || limits.renew();
  const stops = ["jobs", "pulse", "renew"].map((kind) => on(kind, renew));
  const look = { text: "", page: 0 };
  const set = (change) => {
    Object.assign(look, change);
    redraw();
  };
  return {
    title: "Limits",
    nav: "limits",
    view() {
      const found = limits.value?.limits;
      const isUnknown = limits.error?.status === 404;
      return h(
        "div",
        { class: "page" },
        h("h1", { tabindex: "-1" }, "Limits"),
        isUnknown ? empty("Not available", "This service does not report its limits.", null) : limits.error && !found ? failure(limits.error, renew) : null,
        found?.length === 0 ? [empty("No limits", "A rate or concurrency limit applies across all processes. Set it where the type is declared:", null), code(EXAMPLE, "the example")] : null,
        found?.length ? table(found, limits.value.is_complete, look, set) : null,
      );
    },
    stop() {
      stops.forEach((stop) => stop());
      limits.stop();
    },
  };
}

function table(found, isComplete, look, set) {
  const text = look.text.toLowerCase();
  const matching = found.filter((limit) => [nameOf(limit), ...limit.holders].some((each) => each.toLowerCase().includes(text)));
  const pages = Math.max(Math.ceil(matching.length / PAGE), 1);
  const page = Math.min(look.page, pages - 1);
  const turn = (step, word) => h("button", { type: "button", key: word, disabled: page + step < 0 || page + step >= pages, onclick: () => set({ page: page + step }) }, word);
  return h(
    "section",
    { class: "card", "aria-label": "All limits", key: "limits" },
    h("label", { class: "field search" }, h("span", null, "Search"), h("input", { id: "search", type: "search", value: look.text, placeholder: "Type, key, queue or job  ( / )", autocomplete: "off", spellcheck: "false", oninput: (event) => set({ text: event.target.value.trim(), page: 0 }) })),
    matching.length
      ? h("table", { class: "stacked limits", key: "table" }, h("thead", null, h("tr", null, COLUMNS.map((name) => h("th", { scope: "col" }, name)))), h("tbody", null, matching.slice(page * PAGE, (page + 1) * PAGE).map(row)))
      : h("p", { class: "muted", key: "none" }, "No limit matches."),
    h("div", { class: "head wraps", key: "turn" }, h("p", { class: "muted num", role: "status" }, `${count(matching.length, "limit")}${pages > 1 ? `, page ${page + 1} of ${pages}` : ""}${isComplete ? "" : "; there are more keys in use than the service tells of"}`), pages > 1 ? h("div", { class: "actions" }, turn(-1, "Previous"), turn(1, "Next")) : null),
  );
}

function nameOf(limit) {
  if (limit.queue) return `Queue ${limit.queue}`;
  if (limit.key !== null) return `${limit.type} · ${limit.key}`;
  return limit.is_keyed ? `${limit.type} · each key` : limit.type;
}

function row(limit) {
  const isPattern = limit.is_keyed && limit.key === null; // tells what each key may, and is used by none
  const isAhead = (at) => at !== null && Date.parse(at) > now();
  const cools = isAhead(limit.cools_until);
  const isFull = limit.concurrency !== null && limit.running >= limit.concurrency;
  // Why not without waiting jobs: a limit that is used up and keeps nobody waiting is doing its work. Of a key it is not known.
  const isUsedUp = isFull || isAhead(limit.next_at) || (limit.tokens !== null && limit.tokens < 1);
  const isBlocked = cools || (limit.waiting !== 0 && isUsedUp);
  const name = nameOf(limit);
  const state = isBlocked ? h("span", { class: "badge queued" }, cools ? "cooling" : "used up") : isPattern ? null : h("span", { class: "badge done" }, "open");
  const concurrency = limit.concurrency && (isPattern ? String(limit.concurrency) : [`${limit.running} of ${limit.concurrency}`, meter(limit.running / limit.concurrency, `${percent(limit.running / limit.concurrency)} of the concurrency limit`)]);
  const waiting = limit.waiting === null ? null : jobsLink({ ...(limit.queue ? { queue: limit.queue } : { type: limit.type }), status: "queued" }, count(limit.waiting, "job"));
  const next = cools ? when(limit.cools_until) : isAhead(limit.next_at) ? when(limit.next_at) : null;
  const cells = [state, limit.rate && (limit.burst > 1 ? `${limit.rate}, burst ${limit.burst}` : limit.rate), limit.rate && !isPattern && limit.tokens !== null ? number(Math.floor(limit.tokens * 10) / 10) : null, concurrency, waiting, next, holders(limit)];
  return h(
    "tr",
    { key: name, "aria-label": `Limit of ${name}` },
    h("th", { scope: "row", "data-label": COLUMNS[0] }, h("span", { class: "cut", title: name }, name)),
    cells.map((cell, index) => h("td", { "data-label": COLUMNS[index + 1] }, cell || h("span", { class: "muted" }, "–"))),
  );
}

function holders({ holders: ids }) {
  if (!ids?.length) return null;
  return h("ul", { class: "plain" }, ids.slice(0, HOLDERS).map((id) => h("li", { key: id }, jobLink(id))), ids.length > HOLDERS ? h("li", { class: "muted" }, `and ${ids.length - HOLDERS} more`) : null);
}
