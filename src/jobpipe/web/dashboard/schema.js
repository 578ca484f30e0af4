// JSON Schema in words, and an example made from it.

import { h } from "./dom.js";

const PREFIX = "#/components/schemas/";

export const nameOf = (schema) => (schema?.$ref?.startsWith(PREFIX) ? schema.$ref.slice(PREFIX.length) : null);

/** The type in a few words: `string`, `array of Job`, `integer or null`; names of schemas are links. */
export function typeOf(schema) {
  const name = nameOf(schema);
  if (name) return h("a", { href: `#schema-${name}` }, name);
  if (schema.anyOf) return schema.anyOf.map((each, index) => [index ? " or " : "", typeOf(each)]);
  if (schema.enum) return schema.enum.map((value, index) => [index ? " · " : "", h("code", null, JSON.stringify(value))]);
  if (schema.const !== undefined) return h("code", null, JSON.stringify(schema.const));
  if (schema.type === "array") return ["array of ", schema.items && Object.keys(schema.items).length ? typeOf(schema.items) : "anything"];
  if (schema.type === "object" && schema.additionalProperties) return ["object of ", typeOf(schema.additionalProperties)];
  return [schema.type ?? "anything", schema.format ? `, ${schema.format}` : ""];
}

const PAIRS = [
  ["minimum", "maximum", ""],
  ["minLength", "maxLength", " characters"],
  ["minItems", "maxItems", " items"],
];

function bounds(schema) {
  const said = (value) => value.toLocaleString("en");
  const found = PAIRS.filter(([least, most]) => least in schema || most in schema).map(([least, most, what]) => {
    if (!(least in schema)) return [schema.exclusiveMinimum === undefined ? "" : `above ${said(schema.exclusiveMinimum)}, `, `at most ${said(schema[most])}${what}`].join("");
    return most in schema ? `${said(schema[least])} to ${said(schema[most])}${what}` : `at least ${said(schema[least])}${what}`;
  });
  return schema.pattern ? [...found, ["matches ", h("code", null, schema.pattern)]] : found;
}

/** What a value has to be, beside its type. */
export function boundsOf(schema) {
  const found = [schema, ...(schema.anyOf ?? [])].flatMap(bounds);
  if (schema.default !== undefined) found.push([h("code", null, JSON.stringify(schema.default)), " by default"]);
  return found.map((each, index) => [index ? "; " : "", each]);
}

/** A table of the fields of an object. */
export function fieldsOf(schema) {
  const required = new Set(schema.required ?? []);
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "fields" },
      h("thead", null, h("tr", null, ["Field", "Type", "Meaning"].map((name) => h("th", { scope: "col" }, name)))),
      h(
        "tbody",
        null,
        Object.entries(schema.properties ?? {}).map(([name, field]) =>
          h("tr", { key: name }, h("th", { scope: "row" }, h("code", null, name), required.has(name) ? h("span", { class: "must" }, "required") : null), h("td", null, typeOf(field)), h("td", null, field.description ?? "", field.description && boundsOf(field).length ? "; " : "", boundsOf(field))),
        ),
      ),
    ),
  );
}

/** What might be sent; at most so deep that it ends. */
export function exampleOf(schema, schemas, depth = 0) {
  const name = nameOf(schema);
  if (name) return exampleOf(schemas[name], schemas, depth + 1);
  if (schema.default !== undefined) return schema.default;
  if (schema.anyOf) return exampleOf(schema.anyOf[0], schemas, depth);
  if (schema.enum) return schema.enum[0];
  if (schema.type === "array") return depth > 4 ? [] : [exampleOf(schema.items ?? {}, schemas, depth + 1)];
  if (schema.properties) {
    const shown = depth > 4 ? [] : (schema.required ?? []);
    return Object.fromEntries(shown.map((field) => [field, exampleOf(schema.properties[field], schemas, depth + 1)]));
  }
  return { string: "text", integer: schema.minimum ?? 1, number: schema.minimum ?? 1, boolean: true, object: {} }[schema.type] ?? null;
}
