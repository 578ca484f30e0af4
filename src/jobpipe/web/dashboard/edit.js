// Edit and retry: a dialog with the payload of a job, which the service checks before it takes it.

import { getText, postText } from "./api.js";
import { modal } from "./dialog.js";
import { h } from "./dom.js";
import { fieldOf, problemOf } from "./jsontext.js";
import { attempt, toast } from "./toast.js";

/** true if the job runs again. */
export async function editAndRetry(job) {
  const nodes = {};
  const payload = await attempt(async () => fieldOf(await getText(pathOf(job.id)), "payload"));
  if (payload === undefined) return false;
  const answer = await modal((close) => {
    const send = async (event) => {
      event.preventDefault();
      const text = nodes.field.value;
      const problem = problemOf(text) ?? (await refusal(job.id, text));
      if (problem === null) close(true);
      else nodes.problem.textContent = problem;
    };
    return [
      h("h2", { id: "dialog-title" }, "Edit and retry"),
      h("p", { class: "muted" }, `With a new payload the job runs from the start${job.steps.length ? ": its finished steps run again" : ""}.`),
      h(
        "form",
        { class: "stack", onsubmit: send },
        h("label", { class: "field" }, h("span", null, `Payload of type ${job.type}, as JSON`), h("textarea", { class: "mono", rows: 10, spellcheck: "false", autofocus: true, value: payload, made: (node) => (nodes.field = node) })),
        h("p", { class: "error-text", role: "alert", made: (node) => (nodes.problem = node) }),
        h("div", { class: "actions" }, h("button", { type: "button", onclick: () => close(false) }, "Keep as it is"), h("button", { class: "primary" }, "Retry with this payload")),
      ),
    ];
  });
  if (answer === true) toast("The job runs again, with the new payload", "good");
  return answer === true;
}

const pathOf = (id) => `jobs/${encodeURIComponent(id)}`;

async function refusal(id, text) {
  try {
    // Why as text: its numbers stay what they are.
    await postText(`${pathOf(id)}/retry`, `{"payload":${text}}`);
    return null;
  } catch (error) {
    return error.message;
  }
}
