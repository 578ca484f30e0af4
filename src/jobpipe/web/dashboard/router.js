// Real addresses in one document: links to pages of the dashboard change the view, and back and forward work.

import { ROOT } from "./base.js";

/** `routes`: [pattern, page]; `show(page, parameters, query)` is called at every change. */
export class Router {
  #routes;
  #show;
  #missing;

  constructor(routes, missing, show) {
    this.#routes = routes;
    this.#missing = missing;
    this.#show = show;
  }

  start() {
    addEventListener("popstate", () => this.#go());
    document.addEventListener("click", (event) => this.#follow(event));
    this.#go();
  }

  /** Show another address; `isSame` where only the query of the page changes, which needs no new entry. */
  visit(href, { isSame = false } = {}) {
    if (isSame) {
      history.replaceState(null, "", href);
      return;
    }
    history.pushState(null, "", href);
    this.#go();
    scrollTo(0, 0);
  }

  #follow(event) {
    const anchor = event.target.closest?.("a[href]");
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!anchor || !isPlain || event.defaultPrevented || anchor.target) return;
    const url = new URL(anchor.href);
    if (url.hash || url.origin !== ROOT.origin || this.#find(url) === null) return;
    event.preventDefault();
    this.visit(url.pathname + url.search);
  }

  #find(url) {
    if (!url.pathname.startsWith(ROOT.pathname)) return null;
    const path = url.pathname.slice(ROOT.pathname.length);
    for (const [pattern, page] of this.#routes) {
      const found = pattern.exec(path);
      if (found) return { page, parameters: found.slice(1).map(decoded), path };
    }
    return null;
  }

  #go() {
    const found = this.#find(location) ?? { page: this.#missing, parameters: [], path: "" };
    this.#show(found.page, found.parameters, Object.fromEntries(new URLSearchParams(location.search)), found.path);
  }
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // Why: what nobody can read is an id that no job has
  }
}
