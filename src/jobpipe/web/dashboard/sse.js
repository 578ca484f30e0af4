// The wire format of server-sent events: chunks of text in, events out.

export class EventParser {
  #rest = "";

  /** The events that are complete now: `{id, event, data}`; comments are none. */
  push(chunk) {
    const blocks = (this.#rest + chunk).split(/\r?\n\r?\n/);
    this.#rest = blocks.pop();
    return blocks.map(parseBlock).filter((event) => event.data !== undefined);
  }
}

function parseBlock(block) {
  const event = { id: undefined, event: "message", data: undefined };
  for (const line of block.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") event.data = event.data === undefined ? value : `${event.data}\n${value}`;
    else if (name === "id" || name === "event") event[name] = value;
  }
  return event;
}
