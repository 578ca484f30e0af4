// Times and lengths of time in words. A point in time is shown in one way: how far it is, and exactly on hover; where the
// exact time itself is wanted, in the one form of `exact`.

import { h } from "./dom.js";
import { now } from "./store.js";

const UNITS = [
  ["d", 86400],
  ["h", 3600],
  ["m", 60],
  ["s", 1],
];
const FORM = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
const local = new Intl.DateTimeFormat(undefined, FORM);
const fine = new Intl.DateTimeFormat(undefined, { ...FORM, fractionalSecondDigits: 3 });
const zones = new Map(); // name → a formatter, null for a name that the browser does not know

/** Seconds as `1h 5m`, `3.2 s`, `45 ms`: the two largest units, rounded to the nearest. */
export function duration(seconds) {
  if (seconds < 0.0995) return `${Math.max(Math.round(seconds * 1000), 0)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  return inUnits(seconds, 2);
}

/** In so many units, beginning with the largest that fits; the last one is rounded. */
function inUnits(seconds, most) {
  const first = UNITS.findIndex(([, size]) => seconds >= size - 0.5);
  const [, last] = UNITS[Math.min(first + most - 1, UNITS.length - 1)];
  let rest = Math.round(seconds / last) * last;
  const found = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count) found.push(`${count}${unit}`);
  }
  return found.slice(0, most).join(" ");
}

/** `12 s ago`, `in 3m`, `now`. */
export function relative(at) {
  const seconds = (Date.parse(at) - now()) / 1000;
  const size = Math.abs(seconds);
  if (size < 1) return "now";
  const words = size < 59.5 ? `${Math.round(size)} s` : inUnits(size, size < 600 ? 2 : 1);
  return seconds > 0 ? `in ${words}` : `${words} ago`;
}

/** The date and time of the browser; of another zone with its name, where the clock there shows another time. */
export function exact(at, zone = null) {
  const date = new Date(at);
  const here = local.format(date);
  const there = zone && formatter(zone)?.format(date);
  return there && there !== here ? `${there} ${zone.replaceAll("_", " ")}` : here;
}

/** The same with milliseconds, where many follow each other. */
export const precise = (at) => fine.format(new Date(at));

function formatter(zone) {
  if (!zones.has(zone)) {
    try {
      zones.set(zone, new Intl.DateTimeFormat(undefined, { ...FORM, timeZone: zone }));
    } catch {
      zones.set(zone, null);
    }
  }
  return zones.get(zone);
}

const NEVER = Date.UTC(2400, 0);

/** false for what stands for no end, such as that of a wait without a timeout. */
export const isEver = (at) => Date.parse(at) < NEVER;

/** A `time` element: relative, the exact one on hover. */
export function when(at, text = null) {
  return at ? h("time", { datetime: at, title: exact(at) }, text ?? relative(at)) : h("span", { class: "muted" }, "–");
}
