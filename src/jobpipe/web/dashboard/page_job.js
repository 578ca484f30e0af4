// Job: all that is known of one, why it waits, and what can be done to it.

import { get, post, remove } from "./api.js";
import { attemptList, spansOf } from "./attempts.js";
import { pageUrl } from "./base.js";
import { timeline } from "./chart.js";
import { confirm } from "./dialog.js";
import { h } from "./dom.js";
import { editAndRetry } from "./edit.js";
import { count, percent } from "./format.js";
import { Logs } from "./logs.js";
import { badge, code, copyButton, curl, empty, failure, icon, jobsLink, link } from "./parts.js";
import { Resource } from "./resource.js";
import { SignalForm } from "./signal.js";
import { Steps } from "./steps.js";
import { now, on, state } from "./store.js";
import { duration, relative, when } from "./time.js";
import { attempt } from "./toast.js";
import { reason } from "./why.js";

export function jobPage({ parameters: [id], plot, redraw, visit }) {
  const path = `jobs/${encodeURIComponent(id)}`;
  const job = new Resource(load, redraw, 300);
  const why = new Resource(() => get(`${path}/explain`), redraw, 1000);
  const logs = new Logs(path, redraw);
  const steps = new Steps(path, redraw);
  async function load() {
    const found = await get(path);
    if (job.value && job.value.created_at !== found.created_at) logs.forget();
    return found;
  }
  const isOpen = () => job.value && !state.meta.finished.includes(job.value.status);
  const renew = () => [job, why, logs, steps].forEach((each) => each.renew());
  const signalForm = new SignalForm(path, redraw, renew);
  const stops = [
    on("jobs", (events) => (events.some((event) => event.id === id) ? renew() : isOpen() && why.renew())),
    // Why at a pulse: progress is no event of its own, and others may have paused the queue.
    on("pulse", () => isOpen() && (job.value.status === "running" ? [job, logs, steps] : [why]).forEach((each) => each.renew())),
    on("renew", renew),
  ];

  return {
    title: id,
    nav: "jobs",
    view() {
      if (job.value === null && job.error === null) return h("div", { class: "page" }, title(id, null), h("p", { class: "muted" }, "…"));
      if (job.error?.status === 404) return missing(id);
      if (job.value === null) return h("div", { class: "page" }, title(id, null), failure(job.error, renew));
      return h("div", { class: "page job" }, title(id, job.value, renew, visit), card(job.value, why.value, signalForm), lastError(job.value), timelineCard(job.value, plot), steps.view(job.value), attemptList(job.value), logs.view(job.value.status === "running"), contents(job.value));
    },
    stop() {
      stops.forEach((stop) => stop());
      [job, why, logs].forEach((each) => each.stop());
    },
  };
}

function title(id, job, renew, visit) {
  return h(
    "div",
    { class: "head job-head" },
    h("p", { class: "crumb" }, link(pageUrl("jobs"), "Jobs")),
    h("h1", { tabindex: "-1", class: "mono" }, id, copyButton(id, "Copy the id")),
    job ? h("div", { class: "actions" }, badge(job.status), actionButtons(job, renew, visit)) : null,
  );
}

const ACTIONS = [
  { action: "retry", name: "retry", word: "Retry", kind: "primary", run: (job, renew) => change(job, "retry", "The job runs again", renew) },
  { action: "retry", name: "restart", word: "Retry from the start", kind: "", isFor: (job) => job.steps.length > 0, run: restart },
  { action: "retry", name: "edit", word: "Edit and retry", kind: "", run: async (job, renew) => (await editAndRetry(job)) && renew() },
  { action: "cancel", name: "cancel", word: "Cancel", kind: "danger", run: (job, renew) => change(job, "cancel", "The job is being cancelled", renew) },
  { action: "delete", name: "delete", word: "Delete", kind: "danger", run: erase },
];

/** Which buttons there are is what the table of transitions says for its status. */
function actionButtons(job, renew, visit) {
  const isOffered = ({ action, isFor = () => true }) => state.meta.actions[action].includes(job.status) && isFor(job);
  return ACTIONS.filter(isOffered).map(({ name, word, kind, run }) => h("button", { type: "button", key: name, class: kind, onclick: () => run(job, renew, visit) }, icon(name), h("span", null, word)));
}

async function change(job, action, said, renew, body) {
  await attempt(() => post(`jobs/${encodeURIComponent(job.id)}/${action}`, body), said);
  renew();
}

/** Why a question: what the steps did, such as a payment, is done again. */
async function restart(job, renew) {
  const isSure = await confirm({ title: "Retry from the start?", text: "The results of its steps and the signals that it has received are deleted. All steps run again, with all their effects.", yes: "Run all steps again", isDangerous: true });
  if (isSure) await change(job, "retry", "The job runs again, from the start", renew, { from: "start" });
}

async function erase(job, renew, visit) {
  const isSure = await confirm({ title: "Delete this job?", text: "Its payload, result and history are gone. Its id is free again.", yes: "Delete the job", isDangerous: true });
  if (!isSure) return;
  const isGone = await attempt(async () => (await remove(`jobs/${encodeURIComponent(job.id)}`)) ?? true, `${job.id} is deleted`);
  if (isGone) visit(pageUrl("jobs"));
  else renew();
}

function card(job, why, signalForm) {
  const isOpen = !state.meta.finished.includes(job.status);
  return h(
    "section",
    { class: "card", "aria-label": "Details" },
    isOpen ? reason(job, why, signalForm) : null,
    job.progress ? progress(job) : null,
    h(
      "dl",
      { class: "facts" },
      fact("Type", jobsLink({ type: job.type }, job.type)),
      fact("Queue", jobsLink({ queue: job.queue }, job.queue)),
      fact("Attempts", `${job.attempts} of at most ${job.max_retries + 1}`),
      fact("Priority", String(job.priority)),
      fact("Deadline", job.deadline === null ? "none" : duration(job.deadline)),
      job.unique === null ? null : fact("Unique", job.unique),
      job.tags.length ? fact("Tags", job.tags.map((tag, index) => [index ? ", " : "", jobsLink({ tag }, tag)])) : null,
      fact("Created", when(job.created_at)),
      fact("Due", when(job.status === "waiting" ? null : job.run_at)),
      job.expires_at === null ? null : fact("Expires", when(job.expires_at)),
      fact("Started", when(job.started_at)),
      fact("Finished", when(job.finished_at)),
      fact("Took", job.started_at && job.finished_at ? duration((Date.parse(job.finished_at) - Date.parse(job.started_at)) / 1000) : "–"),
    ),
  );
}

const fact = (name, value) => h("div", null, h("dt", null, name), h("dd", { class: "num" }, value));

function progress(job) {
  const value = Math.min(Math.max(job.progress.value, 0), 1);
  return h(
    "div",
    { class: "whole-progress" },
    h("progress", { max: 1, value: String(value), "aria-label": "Progress" }),
    h("p", { class: "num" }, percent(value), job.progress.note ? h("span", { class: "muted" }, ` · ${job.progress.note}`) : null),
  );
}

const KEYS = { wait: "waited", step: "step", running: "runs", done: "done", failed: "failed", cancelled: "cancelled" };

function timelineCard(job, plot) {
  const spans = spansOf(job, now());
  const runs = spans.filter((span) => !["wait", "step"].includes(span.kind)).length;
  const keys = Object.keys(KEYS).filter((kind) => spans.some((span) => span.kind === kind));
  return h(
    "section",
    { class: "card", "aria-labelledby": "timeline" },
    h("h2", { id: "timeline" }, "Timeline"),
    h("div", { class: "plot" }, timeline(spans, { width: plot.width, label: `${count(runs, "run")} since it was created ${relative(job.created_at)}` })),
    h("p", { class: "legend num" }, h("span", null, when(job.created_at, "created")), keys.map((kind) => h("span", { class: `key ${kind}`, key: kind }, KEYS[kind])), h("span", { class: "grow" }), h("span", null, job.finished_at ? when(job.finished_at, "finished") : "now")),
  );
}

function contents(job) {
  const text = (value) => JSON.stringify(value, null, 2);
  const fold = (name, value, isOpen) => h("details", { class: "card", open: isOpen, key: name }, h("summary", null, h("h2", null, name), h("span", { class: "muted preview mono" }, JSON.stringify(value).slice(0, 120))), code(text(value), `the ${name.toLowerCase()}`));
  return [fold("Payload", job.payload, false), job.status === "done" ? fold("Result", job.result, false) : null];
}

/** Of a failed job with its traceback at once: that is what one comes for. */
function lastError(job) {
  if (!job.error) return null;
  const trace = job.status === "failed" ? job.error.traceback : null;
  return h("section", { class: "card bad", "aria-labelledby": "last-error", key: "error" }, h("h2", { id: "last-error" }, "Last error"), h("p", null, h("strong", null, job.error.type), ": ", job.error.message), trace ? code(trace, "the traceback") : null);
}

function missing(id) {
  return h(
    "div",
    { class: "page" },
    title(id, null),
    empty("No job has this id", "It may have been deleted: finished jobs are kept for a limited time. You can enqueue a new job with this id:", curl("POST", "enqueue", { id, payload: null })),
  );
}
