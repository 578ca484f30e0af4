// A form that calls the service, as the reader of the reference would.

import { call, parse } from "./api.js";
import { apiUrl } from "./base.js";
import { h } from "./dom.js";
import { code } from "./parts.js";
import { exampleOf } from "./schema.js";

// Why by hand: what is needed of a job is nothing, and an empty example would teach nothing.
const EXAMPLES = {
  "post /enqueue": { id: "t1", payload: "data", max_retries: 3 },
  "post /enqueue/batch": { jobs: [{ id: "b1", payload: 1 }, { id: "b2", payload: 2, delay: 60 }] },
  "post /jobs/cancel": { status: "queued", queue: "default" },
  "post /jobs/retry": { status: "failed" },
  "put /schedules/{name}": { type: "echo", cron: "0 3 * * *", tz: "Europe/Berlin" },
};

export function exampleBody(operation, schemas) {
  const schema = operation.requestBody?.content["application/json"]?.schema;
  if (!schema) return null;
  return JSON.stringify(EXAMPLES[operation.key] ?? exampleOf(schema, schemas), null, 2);
}

/** `answers`: operation key → what came back; drawn again by `redraw`. */
export function tryForm(operation, schemas, answers, redraw) {
  const parameters = operation.parameters ?? [];
  const body = exampleBody(operation, schemas);
  const submit = async (event) => {
    event.preventDefault();
    const values = new FormData(event.target);
    answers.set(operation.key, { isBusy: true });
    redraw();
    answers.set(operation.key, await send(operation, values, body !== null));
    redraw();
  };
  return h(
    "details",
    { class: "try" },
    h("summary", null, "Try it"),
    h(
      "form",
      { class: "stack", onsubmit: submit },
      parameters.map((each) =>
        h("label", { class: "field", key: `${each.in}-${each.name}` }, `${each.name}${each.required ? "" : " (optional)"}`, h("input", { name: `${each.in}:${each.name}`, required: each.required, autocomplete: "off", spellcheck: "false" })),
      ),
      body === null ? null : h("label", { class: "field" }, "Body", h("textarea", { name: "body", rows: Math.min(body.split("\n").length + 1, 12), spellcheck: "false", class: "mono", made: (node) => (node.value = body) })),
      h("div", { class: "row-actions" }, h("button", { type: "submit", class: operation.method === "get" ? "primary" : "danger" }, `Send ${operation.method.toUpperCase()}`), operation.method === "get" ? null : h("span", { class: "muted" }, "This sends a real request.")),
    ),
    answerOf(answers.get(operation.key)),
  );
}

async function send(operation, values, hasBody) {
  let path = operation.path;
  const query = new URLSearchParams();
  for (const [name, value] of values) {
    const [place, key] = name.split(":");
    if (place === "path") path = path.replace(`{${key}}`, encodeURIComponent(value));
    else if (place === "query" && value !== "") query.set(key, value);
  }
  const target = query.size ? `${path}?${query}` : path;
  const options = { method: operation.method.toUpperCase(), headers: hasBody ? { "Content-Type": "application/json" } : {} };
  if (hasBody) options.body = values.get("body");
  const begin = performance.now();
  try {
    const response = await call(target, options);
    const text = await response.text();
    return { title: `${response.status} ${response.statusText}`, isGood: response.ok, took: performance.now() - begin, url: apiUrl(target).href, text: pretty(text, response.headers.get("content-type") ?? "") };
  } catch (error) {
    return { title: "No answer", isGood: false, took: performance.now() - begin, url: apiUrl(target).href, text: error.message };
  }
}

function pretty(text, type) {
  return type.includes("json") ? JSON.stringify(parse(text), null, 2) : text;
}

function answerOf(answer) {
  if (!answer) return null;
  if (answer.isBusy) return h("p", { class: "muted", role: "status" }, "…");
  return h(
    "div",
    { class: "answer", role: "status" },
    h("p", null, h("strong", { class: answer.isGood ? "good-text" : "error-text" }, answer.title), h("span", { class: "muted num" }, ` in ${Math.round(answer.took)} ms · ${answer.url}`)),
    answer.text ? code(answer.text, "the answer") : null,
  );
}
