// Something that was asked of the service, and is asked again when there is news: one call at a time, and not too often.

export class Resource {
  value = null;
  error = null;
  #load;
  #changed;
  #pause;
  #timer = null;
  #isLoading = false;
  #isWanted = false;
  #isStopped = false;
  #loadedAt = -Infinity;

  constructor(load, changed, pause = 1000) {
    this.#load = load;
    this.#changed = changed;
    this.#pause = pause;
    this.renew();
  }

  /** Have it asked again soon: at once, if the last time is long enough ago. */
  renew() {
    if (this.#isStopped || this.#timer !== null) return;
    if (this.#isLoading) {
      this.#isWanted = true;
      return;
    }
    const wait = Math.max(this.#loadedAt + this.#pause - performance.now(), 0);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.now();
    }, wait);
  }

  /** Ask at once; resolves when the answer is there. */
  async now() {
    this.#isLoading = true;
    try {
      const value = await this.#load();
      if (this.#isStopped) return;
      this.value = value;
      this.error = null;
    } catch (error) {
      this.error = error;
    } finally {
      this.#isLoading = false;
      this.#loadedAt = performance.now();
    }
    if (this.#isStopped) return;
    this.#changed();
    if (this.#isWanted) {
      this.#isWanted = false;
      this.renew();
    }
  }

  stop() {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }
}
