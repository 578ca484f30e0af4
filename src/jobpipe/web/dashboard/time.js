// Times and lengths of time in words; the exact time is in the title.

import { h } from "./dom.js";
import { now } from "./store.js";

const UNITS = [
  ["d", 86400],
  ["h", 3600],
  ["m", 60],
  ["s", 1],
];
const exactly = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

/** Seconds as `1h 5m`, `3.2 s`, `45 ms`: the two largest units. */
export function duration(seconds) {
  if (seconds < 0.0995) return `${Math.max(Math.round(seconds * 1000), 0)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  return parts(seconds).join(" ");
}

function parts(seconds) {
  let rest = Math.round(seconds);
  const found = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count || found.length) found.push(count ? `${count}${unit}` : "");
    if (found.length === 2) break;
  }
  return found.filter(Boolean);
}

/** `12 s ago`, `in 3m`, `now`. */
export function relative(at) {
  const seconds = (Date.parse(at) - now()) / 1000;
  const size = Math.abs(seconds);
  if (size < 1) return "now";
  const words = size < 60 ? `${Math.floor(size)} s` : size < 600 ? parts(size).join(" ") : parts(size)[0];
  return seconds > 0 ? `in ${words}` : `${words} ago`;
}

export function exact(at) {
  return exactly.format(new Date(at));
}

/** The time of day, with milliseconds: for timelines. */
export function timeOfDay(at) {
  const date = new Date(at);
  return `${clock.format(date)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

export const dayAndTime = (at) => day.format(new Date(at));
export const clockTime = (at) => clock.format(new Date(at));

/** A `time` element: relative, the exact one on hover. */
export function when(at, text = relative(at)) {
  return at ? h("time", { datetime: at, title: exact(at) }, text) : h("span", { class: "muted" }, "–");
}
