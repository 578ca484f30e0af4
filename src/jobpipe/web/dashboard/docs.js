// The reference: what can be called, made from /openapi.json, so that it says what the service does.

import { get } from "./api.js";
import { h, patch } from "./dom.js";
import { code, curl, failure } from "./parts.js";
import { boundsOf, fieldsOf, nameOf, typeOf } from "./schema.js";
import { exampleBody, tryForm } from "./tryit.js";

const GROUPS = [
  ["Enqueue", /^\/enqueue/],
  ["Jobs", /^\/(jobs|failures)/],
  ["Queues", /^\/queues/],
  ["Schedules", /^\/schedules/],
  ["Events", /^\/events/],
  ["Statistics", /^\/(stats|metrics|workers|limits)/],
  ["Service", /./],
];
const main = document.getElementById("main");
const contents = document.getElementById("contents");
const answers = new Map(); // what the forms brought
let search = "";
let api = null;

function operationsOf(document) {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, path, method, key: `${method} ${path}`, anchor: operation.operationId, group: GROUPS.find(([, pattern]) => pattern.test(path))[0] })),
  );
}

function fits(operation) {
  const words = `${operation.key} ${operation.summary} ${(operation.parameters ?? []).map((each) => each.name).join(" ")} ${JSON.stringify(operation.requestBody ?? "")}`;
  return search.toLowerCase().split(/\s+/).every((word) => words.toLowerCase().includes(word));
}

function draw() {
  const operations = operationsOf(api).filter(fits);
  const groups = GROUPS.map(([name]) => [name, operations.filter((each) => each.group === name)]).filter(([, found]) => found.length);
  patch(contents, searchField(), groups.map(([name, found]) => [h("h2", { key: name }, name), h("ul", { key: `${name}-list` }, found.map((each) => h("li", { key: each.key }, h("a", { href: `#${each.anchor}` }, methodTag(each), h("span", { class: "cut" }, each.path)))))]), operations.length ? null : h("p", { class: "muted", key: "none" }, "No call matches."));
  patch(
    main,
    h(
      "div",
      { class: "page" },
      h("h1", { tabindex: "-1" }, "API reference"),
      h("p", { class: "muted" }, `${api.info.title} ${api.info.version}. Requests and responses are JSON; errors are problem details. If a token is set, every call except the probes needs the header `, h("code", null, "Authorization: Bearer …"), "."),
      groups.map(([name, found]) => h("section", { class: "group", key: name, "aria-label": name }, h("h2", { class: "group-name" }, name), found.map(operationCard))),
      search ? null : schemaList(),
    ),
  );
}

function searchField() {
  const look = (event) => {
    search = event.target.value.trim();
    draw();
  };
  return h("label", { class: "field", key: "search" }, h("span", null, "Search"), h("input", { id: "search", type: "search", placeholder: "path, word, field  ( / )", oninput: look, autocomplete: "off", spellcheck: "false" }));
}

const methodTag = ({ method }) => h("span", { class: `method ${method}` }, method.toUpperCase());

function operationCard(operation) {
  const schemas = api.components.schemas;
  const parameters = operation.parameters ?? [];
  const body = operation.requestBody?.content["application/json"]?.schema;
  const answersGood = Object.entries(operation.responses).filter(([status]) => status < 400);
  const refusals = Object.entries(operation.responses).filter(([status]) => status >= 400);
  const isStream = answersGood.some(([, answer]) => answer.content?.["text/event-stream"]);
  return h(
    "article",
    { class: "card", id: operation.anchor, key: operation.key, "aria-labelledby": `${operation.anchor}-title` },
    h("h3", { id: `${operation.anchor}-title`, class: "call" }, methodTag(operation), h("span", { class: "mono" }, operation.path)),
    h("p", null, operation.summary, "."),
    parameters.length ? [h("h4", null, "Parameters"), parameterTable(parameters)] : null,
    body ? [h("h4", null, "Body: ", typeOf(body)), nameOf(body) ? fieldsOf(schemas[nameOf(body)]) : null] : null,
    h("h4", null, "Responses"),
    h("ul", { class: "answers" }, answersGood.map(([status, answer]) => h("li", { key: status }, h("span", { class: "num good-text" }, status), h("span", null, answer.description, contentOf(answer))))),
    refusals.length ? h("p", { class: "muted refusals" }, "Errors: ", refusals.map(([status, answer], index) => [index ? ", " : "", h("span", { title: answer.description }, `${status} ${answer.description}`)])) : null,
    code(curl(operation.method.toUpperCase(), operation.path.slice(1), body ? JSON.parse(exampleBody(operation, schemas)) : null).replaceAll("%7B", "{").replaceAll("%7D", "}"), "the command"),
    isStream ? null : tryForm(operation, schemas, answers, draw),
  );
}

function contentOf(answer) {
  const [type, content] = Object.entries(answer.content ?? {})[0] ?? [];
  if (!type) return "";
  return type === "application/json" ? [": ", typeOf(content.schema)] : [": ", h("code", null, type)];
}

function parameterTable(parameters) {
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "fields" },
      h("thead", null, h("tr", null, ["Name", "Where", "Type", "Bounds"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", null, parameters.map((each) => h("tr", { key: each.name }, h("th", { scope: "row" }, h("code", null, each.name), each.required ? h("span", { class: "must" }, "required") : null), h("td", null, each.in), h("td", null, typeOf(each.schema)), h("td", null, boundsOf(each.schema))))),
    ),
  );
}

function schemaList() {
  return h(
    "section",
    { class: "group", key: "schemas", "aria-label": "Schemas" },
    h("h2", { class: "group-name" }, "Schemas"),
    Object.entries(api.components.schemas).map(([name, schema]) =>
      h("article", { class: "card", id: `schema-${name}`, key: name }, h("h3", { class: "mono call" }, name), schema.description ? h("p", null, schema.description) : null, schema.properties ? fieldsOf(schema) : h("p", null, typeOf(schema))),
    ),
  );
}

async function load() {
  try {
    api = await get("openapi.json");
  } catch (error) {
    patch(main, h("div", { class: "page" }, h("h1", null, "API reference"), failure(error, load)));
    return;
  }
  draw();
  // Why here: what an address with a hash means is only there now.
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest?.("input, textarea, dialog")) {
    event.preventDefault();
    document.getElementById("search")?.focus();
  }
});
load();
