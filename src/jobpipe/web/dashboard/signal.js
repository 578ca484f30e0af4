// The form that sends a signal to a job that waits for one. What is no JSON never leaves the page.

import { posted } from "./api.js";
import { h } from "./dom.js";
import { problemOf } from "./jsontext.js";
import { icon } from "./parts.js";
import { toast } from "./toast.js";

const NAME = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}$/; // as of ids; and so never a part of an address that leads elsewhere

export class SignalForm {
  #path;
  #redraw;
  #renew;
  #wanted = null; // the name that the job waits for
  #problem = null;
  #isSending = false;

  constructor(path, redraw, renew) {
    this.#path = path;
    this.#redraw = redraw;
    this.#renew = renew;
  }

  /** Empty again where the job waits for another one; else what was typed stays. */
  view(wanted) {
    if (this.#wanted !== wanted) this.#problem = null;
    this.#wanted = wanted;
    return h(
      "form",
      { class: "signal-form", key: `signal ${wanted}`, "aria-label": "Send a signal", onsubmit: (event) => this.#submit(event) },
      h("label", { class: "field" }, h("span", null, "Signal"), h("input", { name: "name", type: "text", class: "mono", value: wanted, maxlength: 200, autocomplete: "off", autocapitalize: "off", spellcheck: "false" })),
      h("label", { class: "field" }, h("span", null, "Payload, as JSON (empty: null)"), h("textarea", { name: "payload", class: "mono", rows: 2, autocomplete: "off", autocapitalize: "off", spellcheck: "false", "aria-describedby": "signal-problem" })),
      h("div", { class: "actions" }, h("button", { class: "primary" }, icon("play"), h("span", null, "Send signal"))),
      h("p", { id: "signal-problem", class: "error-text", role: "alert" }, this.#problem),
    );
  }

  async #submit(event) {
    event.preventDefault();
    if (this.#isSending) return;
    const [nameField, payloadField] = ["name", "payload"].map((each) => event.currentTarget.elements.namedItem(each));
    const name = nameField.value.trim();
    const payload = payloadField.value.trim() || "null";
    this.#isSending = true;
    this.#problem = this.#check(name, payload) ?? (await this.#send(name, payload));
    this.#isSending = false;
    if (this.#problem === null) {
      nameField.value = this.#wanted;
      payloadField.value = "";
      // Why: the form goes with what the job waits for, and the focus would be lost.
      if (name === this.#wanted) document.querySelector("h1")?.focus({ preventScroll: true });
    }
    this.#redraw();
  }

  #check(name, payload) {
    if (!NAME.test(name)) return "A name has up to 200 letters, digits and . _ : @ - and begins with a letter or digit.";
    return problemOf(payload);
  }

  async #send(name, payload) {
    try {
      // Why as text: its numbers stay what they are.
      const { status } = await posted(`${this.#path}/signals/${encodeURIComponent(name)}`, payload);
      toast(status === 200 ? `Signal ${name} was already sent` : `Signal ${name} sent`, "good");
      return null;
    } catch (error) {
      return error.message;
    } finally {
      this.#renew();
    }
  }
}
