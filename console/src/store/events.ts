// Server-sent events, read from pieces of text that end anywhere.
// https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream

import type { Told } from "./listing";

/** The longest event, in characters: an error of a megabyte fits many times. */
const LONGEST = 32 << 20;

/** Reads events from pieces. */
export class Events {
  private rest = "";
  private name = "message";
  private data: string[] = [];
  private id: string | undefined;

  /** Returns the events that end in a piece. */
  *read(piece: string): Generator<Told> {
    const lines = (this.rest + piece).split("\n");
    this.rest = lines.pop() ?? "";
    if (this.rest.length > LONGEST) throw new Error("an event of the stream does not end");
    for (const line of lines) {
      const told = this.line(line);
      if (told) yield told;
    }
  }

  private line(line: string): Told | undefined {
    if (line === "") {
      const told = { name: this.name, data: this.data.join("\n"), id: this.id };
      const isEvent = this.data.length > 0;
      [this.name, this.data, this.id] = ["message", [], undefined];
      return isEvent ? told : undefined;
    }
    const colon = line.indexOf(":");
    // A sign of life: everything that was to be told has been told.
    if (colon === 0) return { name: "", data: "", id: undefined };
    const value = line.slice(colon + 1).replace(/^ /, "");
    switch (colon < 0 ? line : line.slice(0, colon)) {
      case "event":
        this.name = value;
        break;
      case "data":
        this.data.push(value);
        break;
      case "id":
        this.id = value;
    }
    return undefined;
  }
}
