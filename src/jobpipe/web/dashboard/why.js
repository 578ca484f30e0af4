// Why a job is not running, in words; and while it waits for a signal, the form that sends it.

import { h } from "./dom.js";
import { jobLink } from "./parts.js";
import { when } from "./time.js";

const TITLES = { running: "Running", signal: "Waiting for a signal", sleep: "Sleeping" };
const SHOWN = 8; // blockers

export function reason(job, why, signalForm) {
  const isSignal = job.status === "waiting" && why?.reason === "signal";
  return h(
    "div",
    { class: `why ${why?.reason ?? ""}` },
    h("h2", null, TITLES[why?.reason] ?? "Why it is not running"),
    h("p", { role: "status" }, why ? why.text : "…"),
    h("p", { class: "muted" }, why ? details(why) : null),
    isSignal ? signalForm.view(why.blockers[0]) : null,
  );
}

function details({ reason, until, blockers }) {
  if (reason === "signal") return ["Signal: ", h("span", { class: "mono" }, blockers[0]), ". ", until ? ["Times out: ", when(until)] : "No timeout", "."];
  return [until ? h("span", null, "Until: ", when(until), ". ") : null, blockers.length ? h("span", null, "Blocked by: ", named(reason, blockers)) : null];
}

function named(reason, names) {
  const few = names.slice(0, SHOWN);
  const areJobs = ["position", "concurrency", "rate"].includes(reason);
  return [few.map((name, index) => [index ? ", " : "", areJobs ? jobLink(name, { key: name }) : h("span", { class: "mono" }, name)]), names.length > few.length ? ` and ${names.length - few.length} more` : ""];
}
