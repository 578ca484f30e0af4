// Asks for the token: once, however many calls need it.

import { h } from "./dom.js";
import { modal } from "./dialog.js";

let asking = null; // the one question that is open

export function askForToken(problem) {
  asking ??= ask(problem).finally(() => (asking = null));
  return asking;
}

async function ask(problem) {
  let token = "";
  await modal(
    (close) => [
      h("h2", { id: "dialog-title" }, "This service requires a token"),
      h(
        "p",
        { class: "muted" },
        "It is kept in this tab until you close it. The operator has set it as ",
        h("code", null, "JOBPIPE_TOKEN"),
        ".",
      ),
      h(
        "form",
        {
          class: "stack",
          onsubmit: (event) => {
            event.preventDefault();
            token = event.target.elements.token.value.trim();
            if (token) close();
          },
        },
        h("label", { class: "field" }, "Token", h("input", { name: "token", type: "password", required: true, autocomplete: "off", spellcheck: "false", autofocus: true })),
        h("p", { class: "error-text", role: "alert" }, problem ? `Refused: ${problem}` : ""),
        h("div", { class: "actions" }, h("button", { class: "primary", type: "submit" }, "Use token")),
      ),
    ],
    { canLeave: false },
  );
  return token;
}
