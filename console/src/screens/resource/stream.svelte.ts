// Lines that are followed as they are written.

import type { Schemas } from "../../api";

/** A line, of a run or of a program. */
export interface Line {
  key: string;
  at: string | undefined;
  level: Schemas["LogLevel"] | undefined;
  /** The run that wrote it, or the program. */
  by: string;
  text: string;
  fields: [string, string][];
}

/** The lines that are kept on the page. */
const KEPT = 1_000;
/** The shortest time between two drawings, in milliseconds. */
const BETWEEN = 50;

/** Follows the lines of an address until it is stopped. The browser comes back by itself where the line is broken. */
export class Lines {
  lines = $state.raw<Line[]>([]);
  /** True while the stream stands. */
  isOpen = $state(false);
  /** True if the service refused the stream, so that nothing comes any more. */
  isRefused = $state(false);
  private source: EventSource | undefined;
  private waiting: Line[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private last = 0;
  private next = 0;

  /** Begins to follow. */
  follow(address: string): void {
    this.stop();
    this.lines = [];
    this.waiting = [];
    this.last = 0;
    this.isRefused = false;
    const source = new EventSource(address);
    this.source = source;
    source.onopen = () => (this.isOpen = true);
    source.onerror = () => {
      this.isOpen = false;
      this.isRefused = source.readyState === EventSource.CLOSED;
    };
    source.addEventListener("lines", (event) => this.take(event.data, (one) => this.ofRun(one)));
    source.addEventListener("output", (event) => this.take(event.data, (one) => this.ofProgram(one)));
  }

  /** Ends it; the service ends its part with the connection. */
  stop(): void {
    this.source?.close();
    this.source = undefined;
    this.isOpen = false;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private take(data: string, line: (one: any) => Line | undefined) {
    let ones: unknown;
    try {
      ones = JSON.parse(data);
    } catch {
      return;
    }
    for (const one of Array.isArray(ones) ? ones : [ones]) {
      const read = line(one);
      if (read) this.waiting.push(read);
    }
    this.waiting = this.waiting.slice(-KEPT);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.lines = [...this.lines, ...this.waiting].slice(-KEPT);
      this.waiting = [];
    }, BETWEEN);
  }

  private ofRun(one: Schemas["LogLine"]): Line | undefined {
    // A stream that comes back tells of the last lines once more.
    if (one.id <= this.last) return undefined;
    this.last = one.id;
    const fields = Object.entries(one.fields ?? {}).map(([key, value]): [string, string] => [
      key,
      typeof value === "string" ? value : JSON.stringify(value),
    ]);
    return { key: `${one.id}`, at: one.at, level: one.level, by: one.run, text: one.message, fields };
  }

  private ofProgram(one: Schemas["OutputLine"]): Line {
    return { key: `output ${this.next++}`, at: undefined, level: undefined, by: one.program, text: one.text, fields: [] };
  }
}
