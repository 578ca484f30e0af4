// What can be done to many jobs at once, after a question that says how many: to all of a filter, or to those selected.

import { get, post, remove } from "./api.js";
import { confirm } from "./dialog.js";
import { h } from "./dom.js";
import { compact, count, list } from "./format.js";
import { icon } from "./parts.js";
import { state } from "./store.js";
import { attempt, toast } from "./toast.js";

const VERBS = {
  retry: { word: "Retry", done: "retried", how: "retried at once, with all their retries", isDangerous: false },
  cancel: { word: "Cancel", done: "cancelled", how: "cancelled; running jobs are stopped", isDangerous: true },
  delete: { word: "Delete", done: "deleted", how: "deleted, with their results and errors", isDangerous: true },
};
const AT_ONCE = 6; // calls for selected jobs
const MOST_COUNTED = 500; // jobs: those of one answer

/** The statuses of a filter in which the action can be taken: the table of transitions decides. */
export function statusesFor(action, filter) {
  return state.meta.actions[action].filter((status) => !filter.status || filter.status === status);
}

/** Counts are kept by queue and type, not by tag or error: then `jobs` are all that match, or null where nobody knows. */
function howMany(action, filter, tallies, jobs) {
  const statuses = statusesFor(action, filter);
  if (!isCounted(filter)) return jobs && jobs.filter((job) => statuses.includes(job.status)).length;
  return tallies.tallies
    .filter((each) => statuses.includes(each.status) && (!filter.type || each.type === filter.type) && (!filter.queue || each.queue === filter.queue))
    .reduce((sum, each) => sum + each.count, 0);
}

const isCounted = (filter) => !filter.tag && !filter.error;

/** All that match, if they are few enough. */
async function allNow(filter) {
  const page = await get("jobs", { ...filter, limit: MOST_COUNTED });
  return page.next_cursor === null ? page.jobs : null;
}

/** For all jobs of a filter, which are `jobs` if all are known; none without one, so that nobody changes all by mistake. */
export function bulkButtons(filter, tallies, jobs, changed) {
  if (!Object.keys(filter).length) return [];
  return Object.entries(VERBS).map(([action, { word }]) => {
    const number = tallies.value ? howMany(action, filter, tallies.value, jobs) : 0;
    const isAble = number === null ? statusesFor(action, filter).length > 0 : number > 0;
    const ask = async () => {
      // Why now: the question has to name the number of now.
      const [found] = await Promise.all([isCounted(filter) ? null : allNow(filter).catch(() => null), tallies.now()]);
      await act(action, filter, howMany(action, filter, tallies.value, found), changed);
      tallies.renew();
    };
    const label = number === null ? `${word} all that match` : `${word} all ${number} that match`;
    return h("button", { type: "button", key: action, disabled: !isAble, "aria-label": label, onclick: ask }, icon(action), h("span", { class: "num" }, number ? `${word} ${compact(number)}…` : isAble ? `${word}…` : word));
  });
}

/** Ask, and then do it to all of a filter; `number` is null where it is not known. */
export async function act(action, filter, number, changed) {
  const { word, done, how, isDangerous } = VERBS[action];
  const jobs = number === null ? "all that match" : count(number, "job");
  const which = list(statusesFor(action, filter));
  const where = [filter.type && `of type ${filter.type}`, filter.queue && `in queue ${filter.queue}`, filter.tag && `with the tag ${filter.tag}`, filter.error && `with the error ${filter.error}`].filter(Boolean).join(" ");
  const isSure = await confirm({
    title: `${word} ${jobs}?`,
    text: `All ${which} jobs ${where || "of all types and queues"} are ${how}.`,
    yes: `${word} ${jobs}`,
    isDangerous,
  });
  if (!isSure) return;
  await attempt(() => post(`jobs/${action}`, filter), (answer) => `${count(answer.count, "job")} ${answer.count === 1 ? "is" : "are"} ${done}`);
  changed();
}

/** For the jobs that are selected: only those of them whose status allows it. */
export function selectionButtons(jobs, changed) {
  return Object.entries(VERBS).map(([action, { word }]) => {
    const able = jobs.filter((job) => statusesFor(action, job).length);
    const label = `${word} ${able.length} selected`;
    return h("button", { type: "button", key: action, class: VERBS[action].isDangerous ? "danger" : "", disabled: able.length === 0, "aria-label": label, onclick: () => actOn(action, able, changed) }, icon(action), h("span", { class: "num" }, able.length ? `${word} ${able.length}…` : word));
  });
}

async function actOn(action, jobs, changed) {
  const { word, done, how, isDangerous } = VERBS[action];
  const named = count(jobs.length, "job");
  const isSure = await confirm({ title: `${word} ${named}?`, text: `The selected jobs are ${how}.`, yes: `${word} ${named}`, isDangerous });
  if (!isSure) return;
  const refusals = await doEach(jobs, ({ id }) => {
    const path = `jobs/${encodeURIComponent(id)}`;
    return action === "delete" ? remove(path) : post(`${path}/${action}`);
  });
  const number = jobs.length - refusals.length;
  if (number) toast(`${count(number, "job")} ${number === 1 ? "is" : "are"} ${done}`, "good");
  if (refusals.length) toast(`${count(refusals.length, "job")} could not be ${done}: ${refusals[0].message}`, "bad");
  changed();
}

/** A few at a time; the errors of those that failed. */
async function doEach(items, call) {
  const rest = [...items];
  const errors = [];
  const work = async () => {
    for (let item = rest.shift(); item; item = rest.shift()) {
      try {
        await call(item);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return errors;
}
