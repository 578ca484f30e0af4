// Failed: the jobs that failed, by type and error, and what can be done to a whole group.

import { get } from "./api.js";
import { act } from "./bulk.js";
import { h } from "./dom.js";
import { count, number } from "./format.js";
import { empty, failure, icon, jobLink, jobsLink } from "./parts.js";
import { Resource } from "./resource.js";
import { on } from "./store.js";
import { when } from "./time.js";

export function failedPage({ redraw }) {
  const failures = new Resource(() => get("failures"), redraw, 2000);
  const renew = () => failures.renew();
  const stops = [on("jobs", renew), on("renew", renew)];
  return {
    title: "Failed",
    nav: "failed",
    view() {
      const found = failures.value;
      return h(
        "div",
        { class: "page" },
        h("h1", { tabindex: "-1" }, "Failed"),
        failures.error && !found ? failure(failures.error, renew) : null,
        found?.failures.length === 0 ? empty("No job has failed", "A job that used up its retries appears here, with others of the same type and error.", null) : null,
        found?.failures.length ? table(found, renew) : null,
        h("p", { class: "muted foot num" }, found ? foot(found) : "…"),
      );
    },
    stop() {
      stops.forEach((stop) => stop());
      failures.stop();
    },
  };
}

const foot = ({ failures, counted, is_complete: isComplete }) => (isComplete ? `${count(counted, "job")} in ${count(failures.length, "group")}` : `Only the ${number(counted)} jobs that failed last are counted.`);

function table({ failures }, renew) {
  const head = ["Type", "Error", "Jobs", "First", "Last", "Last job"];
  return h(
    "div",
    { class: "card" },
    h(
      "table",
      { class: "stacked groups" },
      h("thead", null, h("tr", null, head.map((name) => h("th", { scope: "col", class: name === "Jobs" ? "num" : "" }, name)), h("th", { scope: "col" }, h("span", { class: "hidden" }, "Actions")))),
      h("tbody", null, failures.map((group) => row(group, renew))),
    ),
  );
}

function row(group, renew) {
  const filter = { status: "failed", type: group.type, error: group.error };
  const cell = (label, ...children) => h("td", { "data-label": label, class: label === "Jobs" ? "num" : "" }, ...children);
  const name = `${group.type} with ${group.error ?? "no error"}`;
  const button = (action, word) => h("button", { type: "button", key: action, class: `small ${action === "delete" ? "danger" : ""}`, "aria-label": `${word} ${name}`, onclick: () => act(action, filter, group.count, renew) }, icon(action), h("span", null, word));
  return h(
    "tr",
    { key: `${group.type} ${group.error}` },
    h("th", { scope: "row", "data-label": "Type" }, h("span", { class: "cut" }, group.type)),
    cell("Error", group.error === null ? h("span", { class: "muted" }, "none") : h("span", { class: "cut error-text", title: group.error }, group.error)),
    cell("Jobs", jobsLink(filter, number(group.count), { "aria-label": `Show ${count(group.count, "job")} of ${name}` })),
    cell("First", when(group.first_at)),
    cell("Last", when(group.last_at)),
    h("td", { "data-label": "Last job", class: "last-job" }, jobLink(group.last_id)),
    // Why not without an error: no filter names such a group alone.
    h("td", { class: "end" }, group.error === null ? null : h("div", { class: "actions" }, button("retry", "Retry"), button("delete", "Delete"))),
  );
}
