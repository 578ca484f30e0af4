// The runs of a job: as spans of a timeline, and one by one with their errors.

import { h } from "./dom.js";
import { code } from "./parts.js";
import { duration, exact, when } from "./time.js";

const WORDS = { done: "took", failed: "failed after", cancelled: "was cancelled after" };

/** Why no other: what ends without an error has done the job, which then is over, or was cancelled. */
function endOf(run, job) {
  if (run.error) return "failed";
  return job.status === "done" && run === job.history.at(-1) ? "done" : "cancelled";
}

/** Its runs, and the steps of those that were suspended since: these are not in the history. */
function piecesOf(job) {
  const piece = ({ began_at, ended_at }, kind, words) => ({ from: Date.parse(began_at), to: Date.parse(ended_at), kind, words });
  const runs = job.history.map((run) => piece(run, endOf(run, job), `run ${run.number} ${WORDS[endOf(run, job)]}`));
  const begin = job.status === "running" ? Date.parse(job.started_at) : Infinity;
  const steps = job.steps.map((step) => piece(step, "step", `step ${step.name} took`)).filter((step) => step.from < begin && !runs.some((run) => run.from <= step.from && step.from <= run.to));
  return [...runs, ...steps].sort((one, other) => one.from - other.from);
}

/** What it did from its creation on: waits and runs, in milliseconds. */
export function spansOf(job, now) {
  const spans = [];
  let place = Date.parse(job.created_at);
  const add = (to, kind, words) => {
    const end = Math.max(to, place);
    spans.push({ from: place, to: end, kind, label: `${words} ${duration((end - place) / 1000)}` });
    place = end;
  };
  for (const { from, to, kind, words } of piecesOf(job)) {
    if (kind !== "step" || from > place) add(from, "wait", "waited");
    add(to, kind, words);
  }
  const isRunning = job.status === "running";
  if (isRunning) {
    add(Date.parse(job.started_at), "wait", "waited");
    add(now, "running", "running for");
  } else if (!job.finished_at) add(now, "wait", "waiting for");
  else if (Date.parse(job.finished_at) > place) add(Date.parse(job.finished_at), "wait", "waited");
  return spans;
}

export function attemptList(job) {
  const runs = [...job.history].reverse();
  return h(
    "section",
    { class: "card", "aria-labelledby": "attempts" },
    h("h2", { id: "attempts" }, "Attempts"),
    job.status === "running" ? h("div", { class: "attempt", key: "now" }, h("span", { class: "run running" }, "now"), h("span", { class: "num" }, "started ", when(job.started_at))) : null,
    runs.map((run) => attempt(run, endOf(run, job))),
    runs.length || job.status === "running" ? null : h("p", { class: "muted" }, job.started_at ? "No attempt has ended yet." : "The job has not run yet."),
  );
}

function attempt(run, end) {
  const took = duration((Date.parse(run.ended_at) - Date.parse(run.began_at)) / 1000);
  const line = [
    h("span", { class: `run ${end}` }, `#${run.number}`),
    h("span", { class: "num" }, when(run.began_at, exact(run.began_at)), h("span", { class: "muted" }, ` · ${took}`)),
    h("span", { class: "cut muted worker", title: run.worker }, run.worker),
    run.error ? h("span", { class: "cut error-text" }, `${run.error.type}: ${run.error.message}`) : h("span", { class: "muted" }, end === "done" ? "done" : "cancelled"),
  ];
  if (!run.error) return h("div", { class: "attempt", key: run.number }, line);
  return h("details", { key: run.number }, h("summary", { class: "attempt" }, line), code(run.error.traceback ?? `${run.error.type}: ${run.error.message}`, "the error"));
}
