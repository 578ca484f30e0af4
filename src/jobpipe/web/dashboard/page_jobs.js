// Jobs: a list that is live, filtered by what the address says, and what can be done to all that it shows.

import { get } from "./api.js";
import { pageUrl } from "./base.js";
import { bulkButtons } from "./bulk.js";
import { h } from "./dom.js";
import { compact, count } from "./format.js";
import { JobList } from "./joblist.js";
import { badge, curl, empty, failure, icon, jobLink, link, progressBar } from "./parts.js";
import { Resource } from "./resource.js";
import { Selection } from "./selection.js";
import { on, state } from "./store.js";
import { isEver, when } from "./time.js";
import { WindowedList } from "./windowed.js";

const FILTERS = ["status", "type", "queue", "tag", "error"];
const SEARCH_AFTER = 300; // milliseconds without a key

export function jobsPage({ query, redraw, visit }) {
  const filter = Object.fromEntries(FILTERS.filter((name) => query[name]).map((name) => [name, query[name]]));
  const search = { text: query.text ?? "", timer: null };
  const selection = new Selection(redraw);
  const tallies = new Resource(() => get("stats/tallies"), redraw, 2000);
  const rows = new WindowedList(redraw, () => jobs.more());
  let jobs = null;
  const load = () => {
    jobs?.stop();
    jobs = new JobList(search.text ? { ...filter, text: search.text } : filter, redraw);
    // Why while some are selected: the next one must not come to lie where the pointer is.
    jobs.isHeld = () => rows.isHeld || !selection.isEmpty;
  };
  load();
  const stops = [
    on("jobs", (events) => {
      jobs.heed(events);
      tallies.renew();
    }),
    // Why at a pulse: progress is no event of its own.
    on("pulse", () => jobs.jobs.slice(0, 100).some((job) => job.status === "running") && jobs.renew()),
    on("renew", () => [jobs, tallies].forEach((each) => each.renew())),
  ];
  const go = (change) => visit(pageUrl("jobs", { ...filter, text: search.text, ...change }));
  const look = searcher(search, filter, visit, () => {
    selection.clear();
    load();
  });
  const restart = () => jobs.restart();

  return {
    title: "Jobs",
    nav: "jobs",
    view() {
      const shown = jobs.jobs;
      // Why none with a text: the service filters by all else, but not by that.
      const actions = selection.isEmpty ? (search.text ? [] : bulkButtons(filter, tallies, jobs.isWhole ? shown : null, restart)) : selection.bar(shown, restart);
      const columns = [selection.boxForAll(shown), "Status", "Id", "Type", "Queue", "Attempts", "Last event", "Created"];
      return h(
        "div",
        { class: "page jobs" },
        h("div", { class: "head wraps" }, h("h1", { tabindex: "-1" }, "Jobs"), h("div", { class: "actions" }, actions)),
        h("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() }, statusChips(filter, tallies.value, search), searchField(search, look), choice("type", filter, tallies.value, go), choice("queue", filter, tallies.value, go), tagField(filter, go)),
        filter.error ? h("p", { class: "narrowed", key: "error" }, "Last error: ", h("strong", null, filter.error), " ", h("button", { type: "button", class: "small", onclick: () => go({ error: "" }) }, "Any error")) : null,
        freshPill(jobs),
        jobs.error && !jobs.isLoaded ? failure(jobs.error, () => jobs.renew()) : null,
        jobs.isLoaded && !shown.length ? nothing(filter, search) : null,
        h("div", { hidden: shown.length === 0, key: "rows" }, rows.view(shown, (job, props) => row(job, props, selection), { columns, label: "Jobs, newest first", isWhole: jobs.isWhole || Boolean(search.text) })),
        h("p", { class: "muted foot num", key: "foot" }, foot(jobs, shown, search)),
      );
    },
    stop() {
      stops.forEach((stop) => stop());
      [jobs, tallies, rows].forEach((each) => each.stop());
      clearTimeout(search.timer);
    },
  };
}

function row(job, props, selection) {
  return h(
    "div",
    { ...props, class: `row ${job.isOut ? "out" : ""}` },
    h("span", { role: "cell", class: "pick" }, selection.box(job)),
    h("span", { role: "cell" }, badge(job.status)),
    h("span", { role: "cell", class: "id-cell" }, jobLink(job.id, { class: "cover" }), (job.tags ?? []).map((tag) => h("span", { class: "tag", key: tag }, tag))),
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
  if (job.status === "waiting") return h("span", { class: "muted" }, "for a signal", isEver(job.run_at) ? [", times out ", when(job.run_at)] : null);
  if (job.status === "queued") return h("span", { class: "muted" }, "due ", when(job.run_at));
  if (job.error && job.status !== "done") return h("span", { class: "error-text", title: job.error.message }, job.error.message);
  return job.finished_at ? h("span", { class: "muted" }, "ended ", when(job.finished_at)) : null;
}

function statusChips(filter, tallies, search) {
  const { status, ...others } = filter;
  // Why not with these: counts are kept by queue and type.
  const isCounted = tallies && !others.tag && !others.error && !search.text;
  const counted = (wanted) =>
    (tallies?.tallies ?? [])
      .filter((each) => (!wanted || each.status === wanted) && (!others.type || each.type === others.type) && (!others.queue || each.queue === others.queue))
      .reduce((sum, each) => sum + each.count, 0);
  return h(
    "div",
    { class: "chips", role: "group", "aria-label": "Status" },
    [undefined, ...state.meta.statuses].map((each) =>
      link(
        pageUrl("jobs", { ...others, status: each, text: search.text }),
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
    h("span", null, "Search"),
    h("input", { id: "search", type: "search", value: search.text, placeholder: "Text in ids, tags and errors  ( / )", autocomplete: "off", spellcheck: "false", maxlength: 200, oninput: (event) => look(event.target.value.trim(), false), onkeydown: (event) => event.key === "Enter" && look(event.target.value.trim(), true) }),
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

/** Has the service search for the text; entered, it opens the job with exactly this id, if there is one. */
function searcher(search, filter, visit, changed) {
  return async (text, isEntered) => {
    const isNew = text !== search.text;
    search.text = text;
    visit(pageUrl("jobs", { ...filter, text }), { isSame: true });
    clearTimeout(search.timer);
    if (isNew || isEntered) search.timer = setTimeout(changed, isEntered ? 0 : SEARCH_AFTER);
    if (!text || !isEntered) return;
    try {
      const job = await get(`jobs/${encodeURIComponent(text)}`);
      if (search.text === text) visit(pageUrl(`jobs/${encodeURIComponent(job.id)}`));
    } catch {
      // Then no job has exactly this id.
    }
  };
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
  if (search.text) return empty("Nothing found", `Of the jobs that were searched, none has ${JSON.stringify(search.text)} in its id, tags or error.`, null);
  if (Object.keys(filter).length) {
    return h("div", { class: "empty" }, h("h2", null, "No job matches"), h("p", { class: "muted" }, "New matches appear here at once. ", link(pageUrl("jobs"), "Show all jobs"), "."));
  }
  return empty("No job yet", "Enqueue one, and it appears here at once.", curl("POST", "enqueue", { id: "t1", payload: "data", max_retries: 3 }));
}

function foot(jobs, shown, search) {
  if (!jobs.isLoaded) return "…";
  if (!search.text) return jobs.isWhole ? count(shown.length, "job") : `${count(shown.length, "job")} loaded, scroll for older ones`;
  if (jobs.isWhole) return `${count(shown.length, "job")} found`;
  return [`${count(shown.length, "job")} found so far. `, h("button", { type: "button", class: "small", onclick: () => jobs.more() }, "Search older jobs")];
}
