// Charts as SVG: a chart of rates over time, a sparkline, and a timeline of runs. Nothing here asks for data.

import { h } from "./dom.js";
import { rate } from "./format.js";

/** A step that is 1, 2 or 5 times a power of ten, so that at most `most` of them reach `value`. */
export function niceStep(value, most) {
  const rough = Math.max(value, 1e-9) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
}

const linePath = (points) => points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

const STEP = 5; // seconds of one bar
const FRAME = { left: 40, right: 8, top: 10, bottom: 22 };

/** The moments as bars of five seconds, oldest first: the mean of each, so that the last one needs not be whole. */
export function bars(moments, end, length) {
  const last = Math.floor(end / 1000 / STEP);
  const found = new Map();
  for (const moment of moments) {
    const slot = Math.floor(Date.parse(moment.at) / 1000 / STEP);
    if (slot <= last - length / STEP || slot > last) continue;
    const bar = found.get(slot) ?? { slot, back: last - slot, at: new Date(slot * STEP * 1000).toISOString(), count: 0, done: 0, failed: 0 };
    bar.count += 1;
    bar.done += (moment.done - bar.done) / bar.count;
    bar.failed += (moment.failed - bar.failed) / bar.count;
    found.set(slot, bar);
  }
  return [...found.values()];
}

/** Which bar is under the pointer. */
export function barAt(found, place, { width, length }) {
  const size = (width - FRAME.left - FRAME.right) / (length / STEP);
  const back = Math.floor((width - FRAME.right - place) / size);
  return found.find((bar) => bar.back === back) ?? null;
}

/** How many jobs a second ended well and, on top of them, badly. */
export function throughput({ found, chosen, length, width, height, label }) {
  const inner = { width: Math.max(width - FRAME.left - FRAME.right, 10), height: height - FRAME.top - FRAME.bottom };
  const top = Math.max(...found.map((bar) => bar.done + bar.failed), 1);
  const step = Math.max(niceStep(top, 4), 0.5);
  const most = Math.ceil(top / step) * step;
  const size = inner.width / (length / STEP);
  const x = (bar) => width - FRAME.right - (bar.back + 1) * size;
  const y = (value) => FRAME.top + inner.height * (1 - value / most);
  const rect = (kind, bar, from, to) =>
    to > from ? h("rect", { class: `column ${kind}`, key: `${kind}${bar.slot}`, x: (x(bar) + size * 0.1).toFixed(1), y: y(to).toFixed(1), width: (size * 0.8).toFixed(1), height: Math.max(y(from) - y(to), 1).toFixed(1), rx: Math.min(size / 6, 2).toFixed(1) }) : null;
  const ticks = [];
  for (let value = 0; value <= most + step / 2; value += step) ticks.push(value);
  const marks = [0, 1, 2, 3, 4, 5].filter((minutes) => minutes * 60 <= length && (width > 480 || minutes % 2 === 0));
  return h(
    "svg",
    { class: "chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
    ticks.map((value) => [
      h("line", { class: value ? "grid" : "axis", x1: FRAME.left, x2: width - FRAME.right, y1: y(value), y2: y(value) }),
      h("text", { class: "tick", x: FRAME.left - 8, y: y(value) + 4, "text-anchor": "end" }, step < 1 ? value.toFixed(1) : rate(value).replace(".0", "")),
    ]),
    marks.map((minutes) => h("text", { class: "tick", x: FRAME.left + inner.width * (1 - (minutes * 60) / length), y: height - 5, "text-anchor": minutes ? "middle" : "end" }, minutes ? `−${minutes} min` : "now")),
    chosen ? h("rect", { class: "chosen", key: "chosen", x: x(chosen), y: FRAME.top, width: size, height: inner.height }) : null,
    found.map((bar) => [rect("done", bar, 0, bar.done), rect("failed", bar, bar.done, bar.done + bar.failed)]),
  );
}

export function sparkline(values, { width = 120, height = 28, length = 60, label = "" } = {}) {
  const most = Math.max(...values, 1);
  const step = width / (length - 1);
  const begin = width - step * (values.length - 1);
  const points = values.map((value, index) => [begin + index * step, height - 2 - (height - 5) * (value / most)]);
  return h(
    "svg",
    { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
    h("line", { class: "axis", x1: 0, x2: width, y1: height - 1.5, y2: height - 1.5 }),
    points.length > 1 ? h("path", { class: "area", d: `${linePath(points)}L${width} ${height - 1.5}L${begin.toFixed(1)} ${height - 1.5}Z` }) : null,
    points.length > 1 ? h("path", { class: "line", d: linePath(points) }) : null,
  );
}

/** Spans of time one after the other: `{from, to, kind, label}` in milliseconds. */
export function timeline(spans, { width, label }) {
  const height = 34;
  const from = spans[0].from;
  const whole = Math.max(spans.at(-1).to - from, 1);
  // Why a least width: a run of a millisecond beside a wait of an hour has to be seen too.
  const least = Math.min(6, width / spans.length / 2);
  const spare = width - least * spans.length;
  let place = 0;
  return h(
    "svg",
    { class: "timeline", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
    spans.map((span) => {
      const size = least + (spare * Math.max(span.to - span.from, 0)) / whole;
      const begin = place;
      place += size;
      const isRun = span.kind !== "wait";
      return h(
        "rect",
        { class: `span ${span.kind}`, x: begin.toFixed(2), y: isRun ? 4 : 14, width: Math.max(size - 1.5, 1).toFixed(2), height: isRun ? 26 : 6, rx: isRun ? 4 : 3 },
        h("title", null, span.label),
      );
    }),
  );
}
