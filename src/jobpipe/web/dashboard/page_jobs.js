// Jobs: a list that is live, filtered by what the address says, and what can be done to all that it shows.

import { get } from "./api.js";
import { pageUrl } from "./base.js";
import { bulkButtons } from "./bulk.js";
import { h } from "./dom.js";
import { compact, count } from "./format.js";
import { JobList } from "./joblist.js";
import { badge, curl, empty, failure, icon, jobLink, link, progressBar } from "./parts.js";
import { Resource } from "./resource.js";
import { on, state } from "./store.js";
import { when } from "./time.js";
import { WindowedList } from "./windowed.js";

const FILTERS = ["status", "type", "queue", "tag"];

export function jobsPage({ query, redraw, visit }) {
  const filter = Object.fromEntries(FILTERS.filter((name) => query[name]).map((name) => [name, query[name]]));
  const search = { text: query.id ?? "", found: null, asked: 0 };
  const jobs = new JobList(filter, redraw);
  const tallies = new Resource(() => get("stats/tallies"), redraw, 2000);
  const rows = new WindowedList(redraw, () => jobs.more());
  jobs.isHeld = () => rows.isHeld;
  const stops = [
    on("jobs", (events) => {
      jobs.heed(events);
      tallies.renew();
    }),
    // Why at a pulse: progress is no event of its own.
    on("pulse", () => jobs.jobs.slice(0, 100).some((job) => job.status === "running") && jobs.renew()),
    on("renew", () => [jobs, tallies].forEach((each) => each.renew())),
  ];
  const go = (change) => visit(pageUrl("jobs", { ...filter, ...change, id: search.text }));
  const look = searcher(search, filter, redraw, visit);

  return {
    title: "Jobs",
    nav: "jobs",
    view() {
      const shown = search.text ? matching(jobs.jobs, search) : jobs.jobs;
      return h(
        "div",
        { class: "page jobs" },
        h("div", { class: "head" }, h("h1", { tabindex: "-1" }, "Jobs"), h("div", { class: "actions" }, bulkButtons(filter, tallies, () => jobs.renew()))),
        h("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() }, statusChips(filter, tallies.value, search), searchField(search, look), choice("type", filter, tallies.value, go), choice("queue", filter, tallies.value, go), tagField(filter, go)),
        freshPill(jobs),
        jobs.error && !jobs.isLoaded ? failure(jobs.error, () => jobs.renew()) : null,
        jobs.isLoaded && !shown.length ? nothing(filter, search) : null,
        h("div", { hidden: shown.length === 0 }, rows.view(shown, row, { columns: ["Status", "Id", "Type", "Queue", "Attempts", "Details", "Created"], label: "Jobs, newest first", isWhole: jobs.isWhole || Boolean(search.text) })),
        h("p", { class: "muted foot num" }, foot(jobs, shown, search)),
      );
    },
    stop() {
      stops.forEach((stop) => stop());
      [jobs, tallies, rows].forEach((each) => each.stop());
      clearTimeout(search.timer);
    },
  };
}

function row(job, props) {
  return h(
    "div",
    { ...props, class: `row ${job.isOut ? "out" : ""}` },
    h("span", { role: "cell" }, badge(job.status)),
    h("span", { role: "cell", class: "id-cell" }, jobLink(job.id, { class: "mono id cover" }), (job.tags ?? []).map((tag) => h("span", { class: "tag", key: tag }, tag))),
    h("span", { role: "cell", class: "cut" }, job.type),
    h("span", { role: "cell", class: "cut muted" }, job.queue),
    h("span", { role: "cell", class: "num muted", title: `${job.attempts} of at most ${job.max_retries + 1}` }, `${job.attempts}/${job.max_retries + 1}`),
    h("span", { role: "cell", class: "cut what" }, what(job)),
    h("span", { role: "cell", class: "num muted end" }, when(job.created_at)),
  );
}

function what(job) {
  if (job.status === "running") return progressBar(job.progress) ?? h("span", { class: "muted" }, job.started_at ? ["started ", when(job.started_at)] : "starting");
  if (job.status === "scheduled") return h("span", { class: "muted" }, job.attempts ? "retry " : "runs ", when(job.run_at));
  if (job.status === "queued") return h("span", { class: "muted" }, "due ", when(job.run_at));
  if (job.error && job.status !== "done") return h("span", { class: "error-text", title: job.error.message }, job.error.message);
  return job.finished_at ? h("span", { class: "muted" }, "ended ", when(job.finished_at)) : null;
}

function statusChips(filter, tallies, search) {
  const { status, ...others } = filter;
  // Why not with a tag: counts are kept by queue and type.
  const isCounted = tallies && !others.tag;
  const counted = (wanted) =>
    (tallies?.tallies ?? [])
      .filter((each) => (!wanted || each.status === wanted) && (!others.type || each.type === others.type) && (!others.queue || each.queue === others.queue))
      .reduce((sum, each) => sum + each.count, 0);
  return h(
    "div",
    { class: "chips", role: "group", "aria-label": "Status" },
    [undefined, ...state.meta.statuses].map((each) =>
      link(
        pageUrl("jobs", { ...others, status: each, id: search.text }),
        [h("span", { class: `chip-name ${each ?? ""}` }, each ?? "all"), h("span", { class: "num muted" }, isCounted ? compact(counted(each)) : "–")],
        { class: "chip", key: each ?? "all", "aria-current": each === status ? "true" : null },
      ),
    ),
  );
}

function searchField(search, look) {
  return h(
    "label",
    { class: "field search" },
    h("span", null, "Id"),
    h("input", { id: "search", type: "search", value: search.text, placeholder: "Search by id  ( / )", autocomplete: "off", spellcheck: "false", maxlength: 200, oninput: (event) => look(event.target.value.trim(), false), onkeydown: (event) => event.key === "Enter" && look(event.target.value.trim(), true) }),
  );
}

function tagField(filter, go) {
  return h(
    "label",
    { class: "field" },
    h("span", null, "Tag"),
    h("input", { id: "tag", type: "text", value: filter.tag ?? "", placeholder: "any", autocomplete: "off", spellcheck: "false", maxlength: 50, onchange: (event) => go({ tag: event.target.value }) }),
  );
}

/** Narrows what is loaded to ids with the text, and asks the service for the job with exactly this id. */
function searcher(search, filter, redraw, visit) {
  return (text, isEntered) => {
    search.text = text;
    search.found = null;
    const asked = ++search.asked;
    visit(pageUrl("jobs", { ...filter, id: text }), { isSame: true });
    clearTimeout(search.timer);
    redraw();
    if (!text) return;
    search.timer = setTimeout(
      async () => {
        let job = null;
        try {
          job = await get(`jobs/${encodeURIComponent(text)}`);
        } catch {
          // Then no job has exactly this id.
        }
        if (asked !== search.asked) return;
        search.found = job;
        if (job && isEntered) visit(pageUrl(`jobs/${encodeURIComponent(text)}`));
        else redraw();
      },
      isEntered ? 0 : 250,
    );
  };
}

function matching(jobs, search) {
  const found = jobs.filter((job) => job.id.includes(search.text));
  return search.found && !found.some((job) => job.id === search.found.id) ? [search.found, ...found] : found;
}

function choice(name, filter, tallies, go) {
  const values = new Set((tallies?.tallies ?? []).map((each) => each[name]));
  if (filter[name]) values.add(filter[name]);
  return h(
    "label",
    { class: "field" },
    h("span", null, name === "type" ? "Type" : "Queue"),
    h(
      "select",
      { chosen: filter[name] ?? "", onchange: (event) => go({ [name]: event.target.value }) },
      h("option", { key: "", value: "" }, `all ${name}s`),
      [...values].sort().map((value) => h("option", { key: value, value }, value)),
    ),
  );
}

function freshPill(jobs) {
  const isShown = jobs.fresh.size > 0 && jobs.isHeld();
  const show = () => {
    document.activeElement?.blur();
    scrollTo({ top: 0 });
    jobs.renew();
  };
  return h("div", { class: "pill-place", role: "status" }, isShown ? h("button", { type: "button", class: "pill", onclick: show }, icon("up"), count(jobs.fresh.size, "new job")) : null);
}

function nothing(filter, search) {
  if (search.text) return empty("No such id", `No loaded job has ${JSON.stringify(search.text)} in its id, and no job has exactly this id.`, null);
  if (Object.keys(filter).length) {
    return h("div", { class: "empty" }, h("h2", null, "No job matches"), h("p", { class: "muted" }, "New matches appear here at once. ", link(pageUrl("jobs"), "Show all jobs"), "."));
  }
  return empty("No job yet", "Enqueue one, and it appears here at once.", curl("POST", "enqueue", { id: "t1", payload: "data", max_retries: 3 }));
}

function foot(jobs, shown, search) {
  if (!jobs.isLoaded) return "…";
  if (search.text) return `${count(shown.length, "job")} of ${count(jobs.jobs.length, "loaded job")}`;
  return jobs.isWhole ? count(shown.length, "job") : `${count(shown.length, "job")} loaded, scroll for older ones`;
}
