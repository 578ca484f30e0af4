// What the runs of a job logged: only what is new is asked for, and is shown below the rest.

import { get } from "./api.js";
import { h } from "./dom.js";
import { count } from "./format.js";
import { Resource } from "./resource.js";
import { precise } from "./time.js";

const NEAR = 8; // pixels
const MOST_SHOWN = 5000; // more than the service keeps of a job

export class Logs {
  #lines = []; // {number, attempt, at, level, logger, message}; what was shown stays, also if it is cut later
  #last = 0; // the number of the last line, those that were cut included
  #box = null; // the element with the lines
  #resource;

  constructor(path, redraw) {
    this.#resource = new Resource(() => this.#load(path), redraw, 1000);
  }

  async #load(path) {
    const after = this.#last;
    const { lines, last } = await get(`${path}/logs`, { after });
    if (this.#last !== after) return; // forgotten meanwhile: it is asked again
    const before = last - lines.length;
    const added = lines.map((line, index) => ({ ...line, number: before + index + 1 }));
    this.#lines = [...this.#lines, ...added].slice(-MOST_SHOWN);
    this.#last = last;
  }

  /** The job is another one of the same id. */
  forget() {
    this.#lines = [];
    this.#last = 0;
    this.renew();
  }

  renew() {
    this.#resource.renew();
  }

  stop() {
    this.#resource.stop();
  }

  view(isRunning) {
    this.#stayAtEnd(isRunning);
    const cut = this.#last - this.#lines.length;
    return h(
      "section",
      { class: "card logs", "aria-labelledby": "logs" },
      h("h2", { id: "logs" }, "Logs"),
      cut ? h("p", { class: "muted" }, `${count(cut, "older line")} cut: the logs of a job are kept up to a limit.`) : null,
      this.#lines.length ? h("ol", { class: "log mono", role: "log", made: (node) => (this.#box = node), tabindex: "0", "aria-label": "Lines that the job logged" }, this.#lines.map(row)) : h("p", { class: "muted" }, "Nothing was logged."),
    );
  }

  /** Of a job that runs the newest line is in sight, until the user scrolls away from it. */
  #stayAtEnd(isRunning) {
    const box = this.#box;
    const isAtEnd = box ? box.scrollHeight - box.scrollTop - box.clientHeight < NEAR : isRunning;
    queueMicrotask(() => {
      // Why then: the lines are drawn right after this.
      if (isAtEnd && this.#box) this.#box.scrollTop = this.#box.scrollHeight;
    });
  }
}

const KINDS = { WARNING: "warning", ERROR: "error", CRITICAL: "error" };

function row({ number, attempt, at, level, logger, message }) {
  return h(
    "li",
    { key: number, class: KINDS[level] ?? "" },
    h("span", { class: "muted", title: at }, `#${attempt} ${precise(at)}`),
    " ",
    h("span", { class: "level" }, level),
    " ",
    h("span", { class: "muted" }, logger),
    " ",
    h("span", { class: "message" }, message),
  );
}
