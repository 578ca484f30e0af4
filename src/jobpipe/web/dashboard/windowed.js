// A long list of which only the rows in sight are in the document. It scrolls with the page.

import { h } from "./dom.js";

const BEYOND = 12; // rows above and below what can be seen

/** Which rows are in sight; `top` is where the list begins, all in pixels. */
export function rowsInSight(count, rowHeight, top, viewHeight) {
  const first = Math.max(Math.floor(-top / rowHeight) - BEYOND, 0);
  const last = Math.min(Math.ceil((viewHeight - top) / rowHeight) + BEYOND, count);
  return { first: Math.min(first, Math.max(count - 1, 0)), last: Math.max(last, 0) };
}

export class WindowedList {
  #redraw;
  #onEnd;

  constructor(redraw, onEnd) {
    this.#redraw = redraw;
    this.#onEnd = onEnd;
    addEventListener("scroll", redraw, { passive: true });
    addEventListener("resize", redraw, { passive: true });
  }

  stop() {
    removeEventListener("scroll", this.#redraw);
    removeEventListener("resize", this.#redraw);
  }

  /** Is it scrolled away from its beginning, or has one of its rows the focus? */
  get isHeld() {
    if (!this.#node) return false;
    const isScrolled = scrollY > 8 && this.#node.getBoundingClientRect().top < 0;
    return isScrolled || (this.#node.contains(document.activeElement) && document.activeElement.matches(":focus-visible"));
  }

  get #node() {
    // Why looked for: the page that was there before may have left it.
    return document.querySelector(".rows-body");
  }

  get #rowHeight() {
    // Why from the style: it is another one on a phone.
    return parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row")) || 44;
  }

  view(items, row, { columns, label, isWhole }) {
    const height = this.#rowHeight;
    const top = this.#node?.getBoundingClientRect().top ?? 0;
    const { first, last } = rowsInSight(items.length, height, top, innerHeight);
    if (!isWhole && last > items.length - BEYOND * 3) queueMicrotask(this.#onEnd);
    return h(
      "div",
      { class: "rows", role: "table", "aria-label": label, "aria-rowcount": isWhole ? items.length + 1 : -1, onkeydown: (event) => this.#move(event, height) },
      h("div", { role: "rowgroup", class: "rows-head" }, h("div", { role: "row", class: "row", "aria-rowindex": 1 }, columns.map((name) => h("span", { role: "columnheader" }, name)))),
      h(
        "div",
        { role: "rowgroup", class: "rows-body", vars: { "--all": `${items.length * height}px` } },
        items.slice(first, last).map((item, index) => row(item, { key: item.id, role: "row", "aria-rowindex": first + index + 2, "data-index": first + index, vars: { "--at": `${(first + index) * height}px` } })),
      ),
    );
  }

  /** Arrows go from row to row. */
  #move(event, height) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = event.target.closest?.("[data-index]");
    if (!step || !row) return;
    event.preventDefault();
    const target = this.#node.querySelector(`[data-index="${Number(row.dataset.index) + step}"] ${event.target.matches("input") ? "input" : "a"}`);
    if (!target) return;
    target.focus({ preventScroll: true });
    const { top, bottom } = target.closest("[data-index]").getBoundingClientRect();
    if (bottom > innerHeight - 80) scrollBy(0, height);
    else if (top < 140) scrollBy(0, -height);
  }
}
