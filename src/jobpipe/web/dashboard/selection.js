// The rows that are selected in a list of jobs, and what selects them.

import { selectionButtons } from "./bulk.js";
import { h } from "./dom.js";
import { count } from "./format.js";

export class Selection {
  #ids = new Set();
  #redraw;

  constructor(redraw) {
    this.#redraw = redraw;
  }

  get isEmpty() {
    return this.#ids.size === 0;
  }

  clear() {
    this.#ids.clear();
    this.#redraw();
  }

  /** For a row. */
  box(job) {
    return this.#checkbox(`Select ${job.id}`, this.#ids.has(job.id), (isOn) => this.#set([job], isOn));
  }

  /** For all rows that are loaded. */
  boxForAll(jobs) {
    return this.#checkbox("Select all that are loaded", jobs.length > 0 && jobs.every((job) => this.#ids.has(job.id)), (isOn) => this.#set(jobs, isOn));
  }

  /** What can be done to those of these that are selected. */
  bar(jobs, changed) {
    const chosen = jobs.filter((job) => this.#ids.has(job.id));
    const done = () => {
      this.clear();
      changed();
    };
    return [h("span", { class: "num muted", role: "status" }, `${count(chosen.length, "job")} selected`), selectionButtons(chosen, done), h("button", { type: "button", key: "clear", onclick: () => this.clear() }, "Clear")];
  }

  #set(jobs, isOn) {
    for (const { id } of jobs) isOn ? this.#ids.add(id) : this.#ids.delete(id);
    this.#redraw();
  }

  #checkbox(label, isOn, set) {
    return h("input", { type: "checkbox", class: "box", "aria-label": label, checked: isOn, onchange: (event) => set(event.target.checked) });
  }
}
