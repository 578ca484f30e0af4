// The steps of a job: the first ones come with the job, long results cut; the rest, and whole results, in pages when asked for.

import { get } from "./api.js";
import { h } from "./dom.js";
import { count } from "./format.js";
import { code } from "./parts.js";
import { duration, exact, when } from "./time.js";
import { attempt } from "./toast.js";

const WITH_JOB = 50; // that come with the job
const PREVIEW = 120; // characters

const texts = new WeakMap(); // step → its result in words. Why: there may be megabytes, and a page is drawn every second

function textsOf(step) {
  if (!texts.has(step)) {
    const whole = step.cut ? step.result : JSON.stringify(step.result);
    texts.set(step, { text: step.cut ? whole : JSON.stringify(step.result, null, 2), preview: whole.slice(0, PREVIEW) });
  }
  return texts.get(step);
}

export class Steps {
  #path;
  #redraw;
  #pages = []; // {cursor, steps, next}, from the first step on, with whole results
  #loading = null;
  #isWanted = false;

  constructor(path, redraw) {
    this.#path = path;
    this.#redraw = redraw;
  }

  /** Of a list that was turned over to its end, look for what has been added. */
  renew() {
    const isAtEnd = this.#pages.at(-1)?.next === null && this.#size() >= WITH_JOB;
    // Why not at once: the answer that is on its way may be older than the news.
    if (isAtEnd && this.#loading) this.#isWanted = true;
    else if (isAtEnd) this.#more().catch(() => {}); // it is asked again at the next news
  }

  view(job) {
    const steps = this.#known(job.steps);
    if (!steps.length) return null;
    const isMore = steps.length >= WITH_JOB && this.#pages.at(-1)?.next !== null;
    return h(
      "section",
      { class: "card", "aria-labelledby": "steps", key: "steps" },
      h("div", { class: "head" }, h("h2", { id: "steps" }, "Steps"), h("p", { class: "muted num" }, isMore ? `the first ${steps.length}` : count(steps.length, "step"))),
      steps.map((step, index) => this.#step(step, index)),
      isMore ? h("div", { class: "actions", key: " more" }, h("button", { type: "button", class: "small", onclick: () => attempt(() => this.#upTo(steps.length)) }, "Show more steps")) : null,
    );
  }

  /** Those of the job, with what pages know beyond; pages of steps that were dropped since are forgotten. */
  #known(told) {
    const paged = this.#pages.flatMap((page) => page.steps);
    const isSame = told.slice(0, paged.length).every((step, index) => step.name === paged[index].name && step.ended_at === paged[index].ended_at);
    if (!isSame || !told.length) {
      this.#pages = [];
      return told;
    }
    return [...paged, ...told.slice(paged.length)];
  }

  #step(step, index) {
    const took = duration((Date.parse(step.ended_at) - Date.parse(step.began_at)) / 1000);
    const { text, preview } = textsOf(step);
    return h(
      "details",
      { key: step.name },
      h(
        "summary",
        { class: "attempt step-line" },
        h("span", { class: "cut mono", title: step.name }, step.name),
        h("span", { class: "num" }, when(step.began_at, exact(step.began_at)), h("span", { class: "muted" }, ` · ${took}`)),
        h("span", { class: "cut muted mono" }, preview),
      ),
      code(text, step.cut ? `the beginning of the result of ${step.name}` : `the result of ${step.name}`),
      step.cut ? h("div", { class: "cut-note" }, h("p", { class: "muted" }, "This is only the beginning of the result."), h("button", { type: "button", class: "small", "aria-label": `Show the whole result of ${step.name}`, onclick: () => attempt(() => this.#upTo(index)) }, "Show the whole result")) : null,
    );
  }

  /** Ask for pages until the step with this index is there, or there are no more. */
  async #upTo(index) {
    while (this.#size() <= index) {
      if (this.#pages.at(-1)?.next === null) return;
      await this.#more();
    }
  }

  #size() {
    return this.#pages.reduce((sum, page) => sum + page.steps.length, 0);
  }

  /** The next page, or the last one again; one call at a time. */
  #more() {
    this.#loading ??= this.#load().finally(() => {
      this.#loading = null;
      if (!this.#isWanted) return;
      this.#isWanted = false;
      this.renew();
    });
    return this.#loading;
  }

  async #load() {
    const before = this.#pages;
    const last = before.at(-1);
    const isAgain = last?.next === null;
    const cursor = isAgain ? last.cursor : (last?.next ?? null);
    const { steps, next_cursor: next } = await get(`${this.#path}/steps`, { cursor });
    if (this.#pages !== before) return; // forgotten meanwhile
    this.#pages = [...(isAgain ? before.slice(0, -1) : before), { cursor, steps, next }];
    this.#redraw();
  }
}
