// The one place for what changes: the connection, the last minutes, and who wants to know of news.
// Everything else is given what it needs, or asks the service.

const PAST = 300;
const QUEUE_PAST = 60;

export const state = {
  connection: { is: "connecting", since: Date.now() }, // connecting, live, lost
  meta: null, // what the service says of jobs: statuses, transitions, actions
  moments: [], // the last minutes, oldest first
  queues: [], // as the last pulse had them
  holds: new Map(), // name of a queue → {paused, at}: what this page has just done to it
  queuePast: new Map(), // name → {pending: [], done: []}
  skew: 0, // milliseconds that the service's clock is ahead of this one
  skews: [], // what the last pulses said of it
};

const listeners = new Map();

/** Be told of news: `jobs` (a batch of events), `pulse`, `connection`, `renew` (fetch everything again). */
export function on(kind, listener) {
  if (!listeners.has(kind)) listeners.set(kind, new Set());
  listeners.get(kind).add(listener);
  return () => listeners.get(kind).delete(listener);
}

export function tell(kind, value) {
  for (const listener of [...(listeners.get(kind) ?? [])]) listener(value);
}

export function setConnection(is) {
  if (state.connection.is === is) return;
  state.connection = { is, since: Date.now() };
  tell("connection");
}

export function setPast(past) {
  // Why keep what is older: a service that was started anew remembers nothing, this page does.
  const begins = past.moments.length ? Date.parse(past.moments[0].at) : Infinity;
  const older = state.moments.filter((each) => Date.parse(each.at) < begins);
  state.moments = [...older, ...past.moments].slice(-PAST);
  state.queuePast = new Map(past.queues.map((queue) => [queue.name, queue]));
}

export function addPulse(pulse) {
  // Why the most: a pulse is always late, never early.
  state.skews = [...state.skews, Date.parse(pulse.at) - Date.now()].slice(-QUEUE_PAST);
  state.skew = Math.max(...state.skews);
  if (Date.parse(state.moments.at(-1)?.at ?? 0) < Date.parse(pulse.at)) {
    state.moments = [...state.moments, pulse].slice(-PAST);
  }
  const past = new Map();
  for (const queue of pulse.queues) {
    const before = state.queuePast.get(queue.name) ?? { pending: [], done: [] };
    past.set(queue.name, {
      pending: [...before.pending, pending(queue)].slice(-QUEUE_PAST),
      done: [...before.done, queue.done].slice(-QUEUE_PAST),
    });
  }
  state.queuePast = past;
  state.queues = pulse.queues.map(withHold.bind(null, Date.parse(pulse.at)));
  tell("pulse", pulse);
}

/** How many jobs are neither running nor finished. */
export const pending = (counts) => counts.scheduled + counts.waiting + counts.queued;

/** A queue was paused or resumed here: shown at once, and a pulse that is older does not undo it. */
export function setPaused(name, paused) {
  state.holds.set(name, { paused, at: now() });
  state.queues = state.queues.map((queue) => (queue.name === name ? { ...queue, paused } : queue));
}

function withHold(at, queue) {
  const hold = state.holds.get(queue.name);
  return hold && at <= hold.at ? { ...queue, paused: hold.paused } : queue;
}

/** Now, by the service's clock. */
export function now() {
  return Date.now() + state.skew;
}
