// An address where nothing is.

import { pageUrl } from "./base.js";
import { h } from "./dom.js";
import { link } from "./parts.js";

export function missingPage() {
  return {
    title: "Not found",
    nav: "",
    view: () =>
      h(
        "div",
        { class: "page" },
        h("h1", { tabindex: "-1" }, "There is no such page"),
        h("p", { class: "muted" }, "The address may be old, or cut off. ", link(pageUrl(), "Go to the overview"), "."),
      ),
    stop() {},
  };
}
