// A list of jobs that grows at both ends: older ones by pages, newer ones by events. It knows nothing of the screen.

import { get } from "./api.js";
import { Resource } from "./resource.js";

const FIRST = 100;
const PAGE = 500;
const SEARCH_PAUSE = 5000; // Why: a search reads up to ten thousand jobs
const MOST_FRESH = 10_000; // Why: who reads for hours must not run out of memory

export class JobList {
  jobs = [];
  cursor = null;
  fresh = new Set(); // ids of new jobs that are not shown, because the list is held
  isHeld = () => false;
  #filter;
  #changed;
  #head;
  #isLoadingMore = false;
  #isStale = false;

  constructor(filter, changed) {
    this.#filter = filter;
    this.#changed = changed;
    this.#head = new Resource(
      () => get("jobs", { ...filter, limit: FIRST }),
      () => {
        if (this.#head.error === null) this.#merge(this.#head.value);
        changed();
      },
      filter.text ? SEARCH_PAUSE : 1000,
    );
  }

  get isLoaded() {
    return this.#head.value !== null;
  }

  get error() {
    return this.#head.error;
  }

  get isWhole() {
    return this.isLoaded && this.cursor === null;
  }

  renew() {
    this.#head.renew();
  }

  /** Begin anew with the next answer: what is loaded may be gone. */
  restart() {
    this.#isStale = true;
    this.#head.renew();
  }

  stop() {
    this.#head.stop();
  }

  /** Take what events say of jobs: those that are shown change at once, and details are fetched. */
  heed(events) {
    const known = new Map(this.jobs.map((job, index) => [job.id, index]));
    let isNews = false;
    for (const event of events) {
      const index = known.get(event.id);
      if (index !== undefined) {
        const isOut = Boolean(this.#filter.status) && this.#filter.status !== event.status;
        this.jobs[index] = { ...this.jobs[index], status: event.status, attempts: event.attempts, isOut };
        isNews = true;
      } else if (this.#fits(event)) {
        // Why not with these: an event does not tell them of its job.
        const isKnown = !this.#filter.tag && !this.#filter.error && !this.#filter.text;
        if (this.fresh.size < MOST_FRESH && isKnown) this.fresh.add(event.id);
        isNews = true;
      }
    }
    if (!isNews) return;
    this.renew();
    this.#changed();
  }

  /** The next page of older jobs, if there is one. */
  async more() {
    if (this.#isLoadingMore || this.cursor === null) return;
    this.#isLoadingMore = true;
    try {
      const asked = this.cursor;
      const page = await get("jobs", { ...this.#filter, limit: PAGE, cursor: asked });
      if (this.cursor !== asked) return; // Why: the list was begun anew meanwhile
      const known = new Set(this.jobs.map((job) => job.id));
      this.jobs = [...this.jobs, ...page.jobs.filter((job) => !known.has(job.id))];
      this.cursor = page.next_cursor;
    } catch {
      // It is asked for again at the next move of the list.
    } finally {
      this.#isLoadingMore = false;
    }
    this.#changed();
  }

  #fits(event) {
    return ["status", "type", "queue"].every((name) => !this.#filter[name] || this.#filter[name] === event[name]);
  }

  #merge(page) {
    const found = new Map(page.jobs.map((job) => [job.id, job]));
    if (this.isHeld() && this.jobs.length && !this.#isStale) {
      // Why nothing moves now: somebody reads, or is about to press a key.
      this.jobs = this.jobs.map((job) => found.get(job.id) ?? job);
      return;
    }
    this.fresh.clear();
    const last = page.jobs.at(-1);
    const index = last ? this.jobs.findIndex((job) => job.id === last.id) : -1;
    if (index < 0 || page.next_cursor === null || this.#isStale) {
      this.#isStale = false;
      this.jobs = page.jobs;
      this.cursor = page.next_cursor;
    } else {
      this.jobs = [...page.jobs, ...this.jobs.slice(index + 1).filter((job) => !job.isOut)];
    }
  }
}
