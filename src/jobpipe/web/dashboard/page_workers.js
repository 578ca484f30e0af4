// Workers: the processes that run jobs, what each of them does, and when it was last heard of.

import { get } from "./api.js";
import { h } from "./dom.js";
import { megabytes, percent } from "./format.js";
import { copyButton, empty, failure, jobLink, meter } from "./parts.js";
import { Resource } from "./resource.js";
import { on } from "./store.js";
import { when } from "./time.js";

const SHOWN_TYPES = 12;
const SHOWN_JOBS = 16;

export function workersPage({ redraw }) {
  const workers = new Resource(() => get("workers"), redraw, 2000);
  const renew = () => workers.renew();
  const stops = ["jobs", "pulse", "renew"].map((kind) => on(kind, renew));
  return {
    title: "Workers",
    nav: "workers",
    view() {
      const found = workers.value?.workers;
      return h(
        "div",
        { class: "page" },
        h("h1", { tabindex: "-1" }, "Workers"),
        workers.error && !found ? failure(workers.error, renew) : null,
        found?.length === 0 ? empty("No worker is running", "Jobs are accepted and wait. Start a worker on the same store:", "jobpipe worker --store sqlite:///jobpipe.db") : null,
        h("div", { class: "cards" }, (found ?? []).map(card)),
      );
    },
    stop() {
      stops.forEach((stop) => stop());
      workers.stop();
    },
  };
}

// Which queues it serves: nothing for one that serves all.
function queues(worker) {
  if (!worker.queues && !worker.except_queues?.length) return null;
  const slots = worker.slots_by_queue ?? {};
  const taken = worker.running_by_queue ?? {};
  const name = (queue) => (slots[queue] ? `${queue} ${taken[queue] ?? 0}/${slots[queue]}` : queue);
  return [
    h("h3", null, worker.queues ? "Queues" : "All queues except"),
    h("p", { class: "tags" }, (worker.queues ?? worker.except_queues).map((queue) => h("span", { class: "tag", key: queue }, name(queue)))),
  ];
}

// The process that an isolated job runs in: nothing for others.
function child(process) {
  if (!process) return null;
  const { pid, memory, cpu } = process;
  return h("span", { class: "muted num" }, ` process ${pid} · ${megabytes(memory)} · ${cpu.toFixed(1)} s CPU`);
}

function card(worker) {
  const share = worker.slots ? worker.running.length / worker.slots : 0;
  const types = worker.types.slice(0, SHOWN_TYPES);
  return h(
    "section",
    { class: "card", key: worker.name, "aria-label": `Worker ${worker.name}` },
    h("div", { class: "head" }, h("h2", { class: "mono cut", title: worker.name }, worker.name), copyButton(worker.name, "Copy the name")),
    h("p", { class: "muted num" }, "last seen ", when(worker.seen_at), " · up since ", when(worker.started_at)),
    h("p", { class: "num places" }, h("span", null, `Slots in use: ${worker.running.length} of ${worker.slots}`), meter(share, `${percent(share)} of its slots`)),
    queues(worker),
    h("h3", null, "Running jobs"),
    worker.running.length ? h("ul", { class: "plain columns" }, worker.running.slice(0, SHOWN_JOBS).map((id) => h("li", { key: id }, jobLink(id), child(worker.children?.[id]))), worker.running.length > SHOWN_JOBS ? h("li", { class: "muted" }, `and ${worker.running.length - SHOWN_JOBS} more`) : null) : h("p", { class: "muted" }, "none"),
    h("h3", null, "Job types"),
    h("p", { class: "tags" }, types.map((type) => h("span", { class: "tag", key: type }, type)), worker.types.length > types.length ? h("span", { class: "muted" }, `and ${worker.types.length - types.length} more`) : null),
  );
}
