// The table of queues: depth with its past, how much of the workers they take, and the switch that holds them up.

import { post } from "./api.js";
import { sparkline } from "./chart.js";
import { h } from "./dom.js";
import { compact, count, percent, rate } from "./format.js";
import { icon, jobsLink, meter } from "./parts.js";
import { pending, setPaused, state } from "./store.js";
import { attempt } from "./toast.js";

export function queueTable(queues, slots, redraw) {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-labelledby": "queues" },
    h(
      "table",
      { class: "queues" },
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Queue"), h("th", { scope: "col", class: "num" }, "Pending"), h("th", { scope: "col", class: "wide-only" }, "Last minute"), h("th", { scope: "col", class: "num", title: "Suspended until a signal comes" }, "Waiting"), h("th", { scope: "col", class: "num" }, "Running"), h("th", { scope: "col", class: "wide-only" }, "Slots in use"), h("th", { scope: "col", class: "num wide-only" }, "Throughput"), h("th", { scope: "col" }, h("span", { class: "hidden" }, "Actions")))),
      h("tbody", null, queues.map((queue) => row(queue, slots, redraw)), queues.length ? null : h("tr", null, h("td", { colspan: 8, class: "muted" }, "No queue has had a job yet."))),
    ),
  );
}

function row(queue, slots, redraw) {
  const depth = pending(queue);
  const past = state.queuePast.get(queue.name) ?? { pending: [], done: [] };
  const share = slots ? queue.running / slots : 0;
  const lately = past.done.slice(-10);
  const pace = lately.length ? lately.reduce((sum, each) => sum + each, 0) / lately.length : 0;
  return h(
    "tr",
    { key: queue.name, class: queue.paused ? "paused" : "" },
    h("th", { scope: "row" }, jobsLink({ queue: queue.name }, queue.name, { class: "name" }), queue.paused ? h("span", { class: "badge paused" }, "paused") : null),
    h("td", { class: "num", title: `${queue.queued} queued, ${queue.scheduled} scheduled, ${queue.waiting} waiting` }, compact(depth)),
    h("td", { class: "wide-only" }, sparkline(past.pending, { label: `Pending jobs in the last minute, now ${depth}` })),
    h("td", { class: "num" }, queue.waiting ? jobsLink({ queue: queue.name, status: "waiting" }, compact(queue.waiting), { "aria-label": `Show ${count(queue.waiting, "waiting job")} of ${queue.name}` }) : "0"),
    h("td", { class: "num" }, compact(queue.running)),
    h("td", { class: "wide-only" }, meter(share, `${percent(share)} of the worker slots`)),
    h("td", { class: "num wide-only", title: "Jobs done per second" }, `${rate(pace)}/s`),
    h("td", { class: "end" }, holdButton(queue, redraw)),
  );
}

function holdButton(queue, redraw) {
  const verb = queue.paused ? "resume" : "pause";
  const word = queue.paused ? "Resume" : "Pause";
  const hold = async () => {
    const found = await attempt(() => post(`queues/${encodeURIComponent(queue.name)}/${verb}`), `${queue.name} is ${queue.paused ? "resumed" : "paused"}`);
    if (!found) return;
    setPaused(queue.name, found.paused);
    redraw();
  };
  return h("button", { type: "button", class: "small", "aria-label": `${word} ${queue.name}`, onclick: hold }, icon(queue.paused ? "play" : "pause"), h("span", null, word));
}
