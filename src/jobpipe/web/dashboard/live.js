// The stream of events, read with fetch so that the token goes in a header. It lives as long as the page:
// when it breaks, or falls silent, it is opened again, later and later, from the last event that was seen.

import { call } from "./api.js";
import { EventParser } from "./sse.js";
import { addPulse, setConnection, tell } from "./store.js";

const SILENCE = 8000; // milliseconds without a sign of life; there is one every second
const FIRST_PAUSE = 300;
const LONGEST_PAUSE = 5000;

let lastId = null;
let wake = () => {};

export async function live() {
  let pause = FIRST_PAUSE;
  addEventListener("online", () => wake());
  document.addEventListener("visibilitychange", () => document.hidden || wake());
  for (;;) {
    try {
      await read(() => (pause = FIRST_PAUSE));
    } catch {
      // What it was does not matter: it is tried again.
    }
    setConnection("lost");
    await new Promise((resolve) => {
      wake = resolve;
      // Why at random: many pages that lost one service shall not come back at one instant.
      setTimeout(resolve, pause * (0.75 + Math.random() / 2));
    });
    pause = Math.min(pause * 1.7, LONGEST_PAUSE);
  }
}

/** Try again at once. */
export function hurry() {
  wake();
}

async function read(onLive) {
  const abort = new AbortController();
  let watchdog = setTimeout(() => abort.abort(), SILENCE);
  try {
    const headers = lastId === null ? {} : { "Last-Event-ID": lastId };
    const response = await call("events?pulse=true", { headers, signal: abort.signal });
    if (!response.ok) throw new Error(`no events: ${response.status}`);
    setConnection("live");
    onLive();
    tell("renew");
    const parser = new EventParser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort(), SILENCE);
      const { done, value } = await reader.read();
      if (done) return;
      heed(parser.push(value));
    }
  } finally {
    clearTimeout(watchdog);
    abort.abort();
  }
}

function heed(events) {
  const jobs = [];
  for (const { id, event, data } of events) {
    if (id !== undefined) lastId = id;
    if (event === "job") jobs.push(JSON.parse(data));
    else if (event === "pulse") addPulse(JSON.parse(data));
  }
  if (jobs.length) tell("jobs", jobs);
}
