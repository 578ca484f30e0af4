// What can be done to all jobs of a filter at once, after a question that says how many they are.

import { post } from "./api.js";
import { confirm } from "./dialog.js";
import { h } from "./dom.js";
import { compact, count, list } from "./format.js";
import { icon } from "./parts.js";
import { state } from "./store.js";
import { attempt } from "./toast.js";

const VERBS = {
  retry: { word: "Retry", done: "retried", isDangerous: false },
  cancel: { word: "Cancel", done: "cancelled", isDangerous: true },
};

/** The statuses of a filter in which the action can be taken: the table of transitions decides. */
export function statusesFor(action, filter) {
  return state.meta.actions[action].filter((status) => !filter.status || filter.status === status);
}

function howMany(action, filter, tallies) {
  const statuses = statusesFor(action, filter);
  return tallies.tallies
    .filter((each) => statuses.includes(each.status) && (!filter.type || each.type === filter.type) && (!filter.queue || each.queue === filter.queue))
    .reduce((sum, each) => sum + each.count, 0);
}

export function bulkButtons(filter, tallies, changed) {
  return Object.entries(VERBS).map(([action, { word }]) => {
    if (filter.tag) return tagButton(action, filter, tallies, changed);
    const number = tallies.value ? howMany(action, filter, tallies.value) : 0;
    return h(
      "button",
      { type: "button", disabled: number === 0, "aria-label": `${word} all ${number} that match`, onclick: () => act(action, filter, tallies, changed) },
      icon(action),
      h("span", { class: "num" }, number ? `${word} ${compact(number)}…` : word),
    );
  });
}

/** Without a number: counts are kept by queue and type, not by tag. */
function tagButton(action, filter, tallies, changed) {
  const { word } = VERBS[action];
  return h("button", { type: "button", disabled: statusesFor(action, filter).length === 0, "aria-label": `${word} all that match`, onclick: () => act(action, filter, tallies, changed) }, icon(action), h("span", null, `${word}…`));
}

async function act(action, filter, tallies, changed) {
  const { word, done, isDangerous } = VERBS[action];
  await tallies.now(); // Why: the question has to name the number of now
  const number = filter.tag ? null : howMany(action, filter, tallies.value);
  const jobs = number === null ? "all that match" : count(number, "job");
  const which = list(statusesFor(action, filter));
  const where = [filter.type ? `of type ${filter.type}` : "", filter.queue ? `in queue ${filter.queue}` : "", filter.tag ? `with the tag ${filter.tag}` : ""].filter(Boolean).join(" ");
  const isSure = await confirm({
    title: `${word} ${jobs}?`,
    text: `All ${which} jobs ${where || "of all types and queues"}: ${number === 1 ? "it is" : number === null ? "they are" : `${jobs} are`} ${isDangerous ? "cancelled; running jobs are stopped" : "retried at once, with all their retries"}.`,
    yes: `${word} ${jobs}`,
    isDangerous,
  });
  if (!isSure) return;
  const body = Object.keys(filter).length ? filter : { all: true };
  await attempt(() => post(`jobs/${action}`, body), (answer) => `${count(answer.count, "job")} ${answer.count === 1 ? "is" : "are"} ${done}`);
  tallies.renew();
  changed();
}
