// Overview: how fast the service is, what is pending and runs, and how its queues are.

import { get } from "./api.js";
import { pageUrl } from "./base.js";
import { barAt, bars, throughput } from "./chart.js";
import { h } from "./dom.js";
import { compact, percent, rate } from "./format.js";
import { curl, empty, jobLink, jobsLink, link, meter, progressBar } from "./parts.js";
import { queueTable } from "./queues.js";
import { Resource } from "./resource.js";
import { now, on, pending, state } from "./store.js";
import { when } from "./time.js";

const LENGTH = 300; // seconds that the chart shows
const HEIGHT = 220;
const LISTED = 6;

export function overviewPage({ plot, redraw }) {
  const workers = new Resource(() => get("workers"), redraw, 5000);
  const running = new Resource(() => get("jobs", { status: "running", limit: LISTED }), redraw, 1000);
  const failed = new Resource(latestFailures, redraw, 1000);
  const stops = [
    on("jobs", (jobs) => {
      running.renew();
      if (jobs.some((job) => job.status === "failed" || job.status === "queued")) failed.renew();
    }),
    // Why at a pulse: progress is no event of its own, and a worker's end none of a job.
    on("pulse", (pulse) => {
      if (pulse.running || running.value?.jobs.length) running.renew();
      workers.renew();
    }),
    on("renew", () => [workers, running, failed].forEach((each) => each.renew())),
  ];
  const pointer = { x: null }; // where it is over the chart

  return {
    title: "Overview",
    nav: "overview",
    view() {
      const moment = state.moments.at(-1);
      const slots = (workers.value?.workers ?? []).reduce((sum, worker) => sum + worker.slots, 0);
      const isNew = moment && !state.queues.length && state.connection.is === "live";
      return h(
        "div",
        { class: "page" },
        h("h1", { tabindex: "-1" }, "Overview"),
        isNew ? firstSteps() : null,
        h("section", { "aria-label": "Now", class: "tiles", key: "now" }, tiles(moment, slots, workers.value !== null)),
        chartCard(plot, pointer, redraw),
        h(
          "section",
          { "aria-labelledby": "queues", class: "card", key: "queues" },
          h("h2", { id: "queues" }, "Queues"),
          queueTable(state.queues, slots, redraw),
        ),
        h("div", { class: "two" }, list("Running now", "running", running, "No job is running."), list("Latest failures", "failed", failed, "No job has failed.")),
      );
    },
    stop() {
      stops.forEach((stop) => stop());
      [workers, running, failed].forEach((each) => each.stop());
    },
  };
}

/** Why more are asked for: the list is by the time of creation, and one that was retried for long fails late. */
async function latestFailures() {
  const { jobs } = await get("jobs", { status: "failed", limit: LISTED * 8 });
  return { jobs: jobs.sort((one, other) => Date.parse(other.finished_at) - Date.parse(one.finished_at)).slice(0, LISTED) };
}

function firstSteps() {
  return empty(
    "No job yet",
    "Enqueue one, and watch it arrive. The type echo returns its payload.",
    curl("POST", "enqueue", { id: "t1", payload: "data", max_retries: 3 }),
  );
}

function tiles(moment, slots, isKnown) {
  const past = state.moments;
  const sum = (name) => Math.round(past.reduce((all, each) => all + each[name], 0));
  const ended = sum("done") + sum("failed");
  return [
    tile("Pending", moment ? compact(pending(moment)) : "–", moment ? `${compact(moment.queued)} queued · ${compact(moment.scheduled)} scheduled · ${compact(moment.waiting)} waiting` : "", ""),
    tile(
      "Running",
      moment ? compact(moment.running) : "–",
      isKnown ? (slots ? `Slots in use: ${compact(moment?.running ?? 0)} of ${compact(slots)}` : "no worker is running") : "",
      "running",
      slots ? meter((moment?.running ?? 0) / slots, `${percent((moment?.running ?? 0) / slots)} of the worker slots are in use`) : null,
    ),
    tile("Throughput", `${rate(mean("done"))}/s`, `${compact(sum("done"))} done in five minutes`, "done"),
    tile("Failed", compact(sum("failed")), ended ? `${percent(sum("failed") / ended)} of all in five minutes` : "in five minutes", sum("failed") ? "failed" : ""),
  ];
}

function tile(name, value, words, kind, extra = null) {
  return h("div", { class: `tile ${kind}` }, h("h2", null, name), h("p", { class: "big num" }, value), h("p", { class: "muted num" }, words), extra);
}

function chartCard(plot, pointer, redraw) {
  const found = bars(state.moments, now(), LENGTH);
  const chosen = pointer.x === null ? null : barAt(found, pointer.x, { width: plot.width, length: LENGTH });
  const value = (name) => (chosen ? ` ${rate(chosen[name])}` : "");
  const label = `Jobs per second in the last five minutes; recently ${rate(mean("done"))} done and ${rate(mean("failed"))} failed.`;
  const place = (event) => {
    pointer.x = event.clientX - event.currentTarget.getBoundingClientRect().left;
    redraw();
  };
  const leave = () => {
    pointer.x = null;
    redraw();
  };
  return h(
    "section",
    { "aria-labelledby": "rates", class: "card", key: "rates" },
    h(
      "div",
      { class: "head" },
      h("h2", { id: "rates" }, "Throughput, jobs per second"),
      h("p", { class: "legend num" }, chosen ? h("span", { class: "muted", key: "at" }, when(chosen.at)) : null, h("span", { class: "key done", key: "done" }, `done${value("done")}`), h("span", { class: "key failed", key: "failed" }, `failed${value("failed")}`)),
    ),
    h("div", { class: "plot", onpointermove: place, onpointerleave: leave }, throughput({ found, chosen, length: LENGTH, width: plot.width, height: HEIGHT, label })),
  );
}

function mean(name) {
  const lately = state.moments.slice(-10);
  return lately.length ? lately.reduce((sum, each) => sum + each[name], 0) / lately.length : 0;
}

function list(title, status, resource, nothing) {
  const jobs = resource.value?.jobs ?? [];
  return h(
    "section",
    { class: "card", "aria-labelledby": `list-${status}` },
    h("div", { class: "head" }, h("h2", { id: `list-${status}` }, title), status === "failed" ? link(pageUrl("failed"), "All", { class: "more", "aria-label": "All failed jobs" }) : jobsLink({ status }, "All", { class: "more", "aria-label": `All ${status} jobs` })),
    h(
      "ul",
      { class: "brief" },
      jobs.map((job) =>
        h(
          "li",
          { key: job.id },
          jobLink(job.id),
          h("span", { class: "muted" }, job.type),
          h("span", { class: "say" }, status === "running" ? progressBar(job.progress) : h("span", { class: "error-text", title: job.error?.message }, job.error?.message ?? "")),
          h("span", { class: "muted num" }, when(status === "running" ? job.started_at : job.finished_at)),
        ),
      ),
      jobs.length ? null : h("li", { class: "muted nothing" }, resource.value ? nothing : "…"),
    ),
  );
}
