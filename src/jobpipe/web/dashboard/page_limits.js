// Limits: what each lets through, and who has to wait for it until when.

import { get } from "./api.js";
import { h } from "./dom.js";
import { count, number, percent } from "./format.js";
import { code, empty, failure, jobLink, jobsLink, meter } from "./parts.js";
import { Resource } from "./resource.js";
import { now, on } from "./store.js";
import { when } from "./time.js";

const SHOWN = 6;
const EXAMPLE = `@pipe.job("email", rate="5/s", concurrency=2)
async def send_email(mail): ...`;

export function limitsPage({ redraw }) {
  const limits = new Resource(() => get("limits"), redraw, 1000);
  const renew = () => limits.error?.status === 404 || limits.renew();
  const stops = ["jobs", "pulse", "renew"].map((kind) => on(kind, renew));
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
        h("div", { class: "cards" }, (found ?? []).map(card)),
      );
    },
    stop() {
      stops.forEach((stop) => stop());
      limits.stop();
    },
  };
}

function card(limit) {
  const isPattern = limit.is_keyed && limit.key === null; // tells what each key may, and is used by none
  const title = limit.queue ? `Queue ${limit.queue}` : isPattern ? `${limit.type} · each key` : limit.key === null ? limit.type : `${limit.type} · ${limit.key}`;
  const isAhead = (at) => at !== null && Date.parse(at) > now();
  const cools = isAhead(limit.cools_until);
  const isFull = limit.concurrency !== null && limit.running >= limit.concurrency;
  // Why not without waiting jobs: a limit that is used up and keeps nobody waiting is doing its work. Of a key it is not known.
  const isUsedUp = isFull || isAhead(limit.next_at) || (limit.tokens !== null && limit.tokens < 1);
  const isBlocked = cools || (limit.waiting !== 0 && isUsedUp);
  return h(
    "section",
    { class: "card", key: title, "aria-label": `Limit of ${title}` },
    h("div", { class: "head" }, h("h2", { class: "cut", title }, title), isBlocked ? h("span", { class: "badge queued" }, cools ? "cooling" : "used up") : isPattern ? null : h("span", { class: "badge done" }, "open")),
    h(
      "dl",
      { class: "facts" },
      limit.rate ? fact("Rate", limit.burst > 1 ? `${limit.rate}, burst ${limit.burst}` : limit.rate) : null,
      limit.rate && !isPattern ? fact("Tokens left", limit.tokens === null ? "–" : number(Math.floor(limit.tokens * 10) / 10)) : null,
      limit.concurrency && isPattern ? fact("Concurrency", limit.concurrency) : null,
      limit.concurrency && !isPattern ? fact("Concurrency", [`${limit.running} of ${limit.concurrency}`, meter(limit.running / limit.concurrency, `${percent(limit.running / limit.concurrency)} of the concurrency limit`)]) : null,
      limit.waiting === null ? null : fact("Waiting", jobsLink({ ...(limit.queue ? { queue: limit.queue } : { type: limit.type }), status: "queued" }, count(limit.waiting, "job"))),
      isAhead(limit.next_at) ? fact("Next start", when(limit.next_at)) : null,
      cools ? fact("Cooling until", when(limit.cools_until)) : null,
    ),
    limit.holders?.length ? [h("h3", null, "Held by"), h("ul", { class: "plain" }, limit.holders.slice(0, SHOWN).map((id) => h("li", { key: id }, jobLink(id))), limit.holders.length > SHOWN ? h("li", { class: "muted" }, `and ${limit.holders.length - SHOWN} more`) : null)] : null,
  );
}

const fact = (name, value) => h("div", null, h("dt", null, name), h("dd", { class: "num" }, value));
