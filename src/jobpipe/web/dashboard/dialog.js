// Questions that stand before everything else, in the browser's own modal dialog.

import { h, patch } from "./dom.js";

/** Shows what `view(close)` gives until it calls `close`; resolves to what that was called with. */
export function modal(view, { canLeave = true } = {}) {
  return new Promise((resolve) => {
    const dialog = document.createElement("dialog");
    dialog.setAttribute("aria-labelledby", "dialog-title");
    let isAnswered = false;
    let answer;
    const close = (value) => {
      isAnswered = true;
      answer = value;
      dialog.close();
    };
    dialog.addEventListener("close", () => {
      // Why here: browsers let a second Escape through, whatever the handler of `cancel` does.
      if (!isAnswered && !canLeave) return dialog.showModal();
      dialog.remove();
      return resolve(answer);
    });
    patch(dialog, ...view(close));
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** A question with two answers; true if it was the one that does something. */
export async function confirm({ title, text, yes, no = "Keep as it is", isDangerous = false }) {
  const answer = await modal((close) => [
    h("h2", { id: "dialog-title" }, title),
    h("p", { class: "muted" }, text),
    h(
      "div",
      { class: "actions" },
      h("button", { type: "button", onclick: () => close(false), autofocus: true }, no),
      h("button", { type: "button", class: isDangerous ? "danger" : "primary", onclick: () => close(true) }, yes),
    ),
  ]);
  return answer === true;
}
