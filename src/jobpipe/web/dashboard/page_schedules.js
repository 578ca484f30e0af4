// Schedules: when each puts its job in, in words, and what came of it last.

import { get, post } from "./api.js";
import { h } from "./dom.js";
import { code, curl, empty, failure, icon, jobLink, jobsLink } from "./parts.js";
import { Resource } from "./resource.js";
import { now, on } from "./store.js";
import { exact, when } from "./time.js";
import { timingInWords } from "./timing.js";
import { attempt, toast } from "./toast.js";

const LOOK_EVERY = 5; // pulses

export function schedulesPage({ redraw }) {
  const schedules = new Resource(() => get("schedules"), redraw, 1000);
  const renew = () => schedules.renew();
  const show = (changed) => {
    const found = schedules.value.schedules.map((each) => (each.name === changed.name ? changed : each));
    schedules.value = { schedules: found };
    redraw();
    renew(); // Why: an answer from before the change may still be on its way
  };
  let pulses = 0;
  const isDue = () => (schedules.value?.schedules ?? []).some((each) => Date.parse(each.next_at[0]) < now());
  const stops = [
    on("jobs", (jobs) => jobs.some((job) => job.status === "queued" || job.status === "scheduled") && renew()),
    // Why: a tick that passes moves the next times, and is seen by its time alone; what others pause or put in, by a look.
    on("pulse", () => (++pulses % LOOK_EVERY === 0 || isDue()) && renew()),
    on("renew", renew),
  ];
  return {
    title: "Schedules",
    nav: "schedules",
    view() {
      const found = schedules.value?.schedules;
      return h(
        "div",
        { class: "page" },
        h("h1", { tabindex: "-1" }, "Schedules"),
        schedules.error && !found ? failure(schedules.error, renew) : null,
        found?.length === 0 ? empty("No schedule yet", "A schedule enqueues one job at every tick, even with many processes. Create one:", curl("PUT", "schedules/nightly", { type: "echo", cron: "0 3 * * *", tz: "Europe/Berlin" })) : null,
        h("div", { class: "cards" }, (found ?? []).map((each) => card(each, renew, show))),
      );
    },
    stop() {
      stops.forEach((stop) => stop());
      schedules.stop();
    },
  };
}

function card(schedule, renew, show) {
  const run = async () => {
    const answer = await attempt(() => post(`schedules/${encodeURIComponent(schedule.name)}/run`));
    if (!answer) return;
    toast(`${schedule.name} runs now as ${answer.id}`, "good");
    renew();
  };
  return h(
    "section",
    { class: "card", key: schedule.name, "aria-label": `Schedule ${schedule.name}` },
    h("div", { class: "head" }, h("h2", { class: "cut", title: schedule.name }, schedule.name), h("div", { class: "actions" }, holdButton(schedule, show), h("button", { type: "button", class: "small", "aria-label": `Run ${schedule.name} now`, onclick: run }, icon("play"), h("span", null, "Run now")))),
    h("p", { class: "timing" }, timingInWords(schedule), schedule.paused ? h("span", { class: "badge paused" }, "paused") : null),
    h("p", { class: "muted" }, schedule.cron ? h("code", null, schedule.cron) : null, schedule.cron ? " · " : "", "enqueues ", jobsLink({ type: schedule.type }, schedule.type), " in ", jobsLink({ queue: schedule.queue }, schedule.queue), schedule.missed === "none" ? " · missed ticks are skipped" : ""),
    h("h3", null, "Next"),
    schedule.paused ? h("p", { class: "muted" }, "None while paused.") : h("ol", { class: "times num" }, schedule.next_at.map((at, index) => h("li", { title: exact(at) }, h("span", null, exact(at, schedule.tz)), h("span", { class: "muted" }, index ? null : when(at))))),
    h("h3", null, "Last"),
    schedule.last_job ? h("p", { class: "num last" }, jobLink(schedule.last_job), h("span", { class: "muted" }, when(schedule.last_at))) : h("p", { class: "muted" }, "The schedule has not run yet."),
    schedule.payload === null ? null : h("details", null, h("summary", null, "Payload"), code(JSON.stringify(schedule.payload, null, 2), "the payload")),
  );
}

function holdButton(schedule, show) {
  const verb = schedule.paused ? "resume" : "pause";
  const word = schedule.paused ? "Resume" : "Pause";
  const hold = async () => {
    const found = await attempt(() => post(`schedules/${encodeURIComponent(schedule.name)}/${verb}`), `${schedule.name} is ${schedule.paused ? "resumed" : "paused"}`);
    if (found) show(found);
  };
  return h("button", { type: "button", class: "small", "aria-label": `${word} ${schedule.name}`, onclick: hold }, icon(schedule.paused ? "play" : "pause"), h("span", null, word));
}
