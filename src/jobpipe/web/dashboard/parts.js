// Small parts that all pages share: links, badges, copy buttons, empty states.

import { hasToken } from "./api.js";
import { jobUrl, pageUrl, ROOT } from "./base.js";
import { h } from "./dom.js";
import { percent } from "./format.js";
import { toast } from "./toast.js";

export function link(href, text, props = {}) {
  return h("a", { href, ...props }, text);
}

const TAIL = 8; // characters of a long id that are always shown: the last ones differ most

/** Of a long id the middle is cut where there is no room for all. */
export function jobLink(id, props = {}) {
  const isLong = id.length > 2 * TAIL;
  const name = { title: id, "aria-label": isLong ? id : null, ...props, class: `mono id ${isLong ? "long" : ""} ${props.class ?? ""}` };
  return link(jobUrl(id), isLong ? [h("span", { class: "id-head" }, id.slice(0, -TAIL)), h("span", null, id.slice(-TAIL))] : id, name);
}

export const jobsLink = (filter, text, props = {}) => link(pageUrl("jobs", filter), text, props);

export function badge(status) {
  return h("span", { class: `badge ${status}` }, h("span", { class: "dot", "aria-hidden": "true" }), status);
}

export function progressBar(progress) {
  if (!progress) return null;
  const value = Math.min(Math.max(progress.value, 0), 1);
  return h(
    "span",
    { class: "progress", title: progress.note ?? percent(value) },
    h("progress", { max: 1, value: String(value), "aria-label": "Progress" }),
    h("span", { class: "num" }, percent(value)),
  );
}

/** A bar that fills: how much of something is used. */
export function meter(value, label) {
  return h(
    "span",
    { class: "meter", role: "img", "aria-label": label, title: label },
    h("span", { class: "fill", vars: { "--part": `${Math.round(Math.min(value, 1) * 100)}%` } }),
  );
}

export function copyButton(text, label = "Copy") {
  return h("button", { type: "button", class: "copy", "aria-label": label, title: label, onclick: () => copy(text) }, icon("copy"));
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyByHand(text); // Why: over plain HTTP from afar there is no clipboard to ask for
  }
  toast("Copied");
}

function copyByHand(text) {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function icon(name) {
  const shapes = {
    copy: [h("rect", { x: 5.5, y: 5.5, width: 8, height: 8, rx: 1.5 }), h("path", { d: "M3.5 10.5h-.5a.5.5 0 0 1-.5-.5v-7a.5.5 0 0 1 .5-.5h7a.5.5 0 0 1 .5.5v.5" })],
    pause: [h("path", { d: "M5.5 3.5v9M10.5 3.5v9" })],
    play: [h("path", { d: "M5 3.2v9.6L12.5 8z" })],
    retry: [h("path", { d: "M13 8a5 5 0 1 1-1.6-3.7M13 2.5v2.7h-2.7" })],
    cancel: [h("path", { d: "M4 4l8 8M12 4l-8 8" })],
    restart: [h("path", { d: "M3.5 3v10M13 3.5v9L6.5 8z" })],
    edit: [h("path", { d: "M3 13l.6-2.8 7.3-7.3 2.2 2.2-7.3 7.3zM9.6 4.2l2.2 2.2" })],
    delete: [h("path", { d: "M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5M6.8 7v3.5M9.2 7v3.5" })],
    up: [h("path", { d: "M8 12.5v-9M4 7l4-4 4 4" })],
  };
  return h("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, ...shapes[name]);
}

/** Text that can be copied: a command, a payload. */
export function code(text, label) {
  return h("div", { class: "code" }, h("pre", { tabindex: "0", "aria-label": label }, text), copyButton(text, `Copy ${label}`));
}

/** Nothing there yet: what it means, and the command that changes it. */
export function empty(title, text, command) {
  return h("div", { class: "empty" }, h("h2", null, title), h("p", { class: "muted" }, text), command ? code(command, "the command") : null);
}

/** A curl to this very service. */
export function curl(method, path, body) {
  const url = new URL(path, ROOT).href;
  const lines = [`curl ${method === "GET" ? "" : `-X ${method} `}'${url}'`];
  if (hasToken()) lines.push(`-H "Authorization: Bearer $JOBPIPE_TOKEN"`);
  if (body) lines.push("-H 'Content-Type: application/json'", `-d '${JSON.stringify(body)}'`);
  return lines.join(" \\\n     ");
}

export function failure(error, again) {
  return h(
    "div",
    { class: "empty", role: "alert" },
    h("h2", null, "That did not work"),
    h("p", { class: "muted" }, error.message),
    again ? h("button", { type: "button", onclick: again }, "Try again") : null,
  );
}
