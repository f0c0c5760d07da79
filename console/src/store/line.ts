// The one connection over which a project is followed: opened again whenever it ends.

import { made, type ProblemDocument } from "../api";
import { Events } from "./events";
import { Listing, type Moved } from "./listing";

/** How a line stands. */
export type Standing =
  /** The first listing is under way. */
  | { is: "opening" }
  /** What is shown is what there is. */
  | { is: "following" }
  /** Nothing was heard, and it is tried again. */
  | { is: "broken"; problem: ProblemDocument };

/** What a line tells those who look. */
export interface News {
  standing: Standing;
  /** When the service was last heard, in milliseconds. */
  heard: number;
  moved: Moved | undefined;
}

/** The time between two pieces of news, in milliseconds: no eye follows more than 20 a second. */
const BETWEEN = 50;
/** The service says something every 15 s; after more than two of those it has gone. */
const SILENCE = 35_000;
/** The waits before a line is opened again, in milliseconds; the last one is repeated. */
const WAITS = [200, 500, 1_000, 2_000, 4_000];
/** The time between two signs of life without news, in milliseconds. */
const BEAT = 2_000;

/** What a line has read so far, for another one that goes on from there. */
export interface Known {
  /** The bytes of its only connection. */
  pieces: Uint8Array<ArrayBuffer>[];
  /** How often files were said to have changed. */
  files: number;
}

type Ask = (address: string, init: RequestInit) => Promise<Response>;

/** What a line is begun with. */
interface Beginning {
  /** What another one has read. */
  known?: Known | undefined;
  /** True if it keeps what it reads, for another one. */
  isPassedOn?: boolean;
  ask?: Ask;
}

/** A line to the stream of a project. */
export class Line {
  private readonly listing = new Listing();
  private standing: Standing = { is: "opening" };
  private heard = 0;
  private told = 0;
  private failures = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private connection: AbortController | undefined;
  private isClosed = false;
  private silence: ReturnType<typeof setTimeout> | undefined;
  /** What was read, where it is passed on and all came over one connection. */
  private kept: Known["pieces"] | undefined;
  private readonly ask: Ask;

  constructor(
    private readonly address: string,
    private readonly tell: (news: News) => void,
    { known, isPassedOn, ask }: Beginning = {},
  ) {
    this.ask = ask ?? fetch.bind(globalThis);
    if (known) this.learn(known);
    if (isPassedOn) this.kept = [];
    void this.run();
  }

  /** Takes what another line has read. Files may have changed meanwhile, of which nobody would tell. */
  private learn({ pieces, files }: Known): void {
    const [events, decoder] = [new Events(), new TextDecoder()];
    this.listing.begin();
    for (const piece of pieces) for (const told of events.read(decoder.decode(piece, { stream: true }))) this.listing.take(told);
    this.listing.goOn(files + 1);
  }

  /**
   * Ends the line, and returns what it knows; none where another one has to list anew. What was read and not told yet is told
   * before, for whoever goes on from there tells only what moves later.
   */
  leave(): Known | undefined {
    const moved = this.listing.flush();
    if (moved && !this.isClosed) this.tell({ standing: this.standing, heard: this.heard, moved });
    this.close();
    return this.kept && { pieces: this.kept, files: this.listing.files };
  }

  /** Returns all that is known, for one who begins to look. */
  whole(): News {
    return { standing: this.standing, heard: this.heard, moved: this.listing.whole() };
  }

  /** Ends the line. */
  close(): void {
    this.isClosed = true;
    this.connection?.abort();
    clearTimeout(this.timer);
    clearTimeout(this.silence);
  }

  private async run(): Promise<void> {
    while (!this.isClosed) {
      let problem = made("unavailable", "The connection to the service ended.", "It is opened again by itself.");
      try {
        problem = (await this.follow()) ?? problem;
      } catch (error) {
        const detail = error instanceof Error ? error.message : String(error);
        problem = made("unavailable", `The service can't be followed: ${detail}`, "Is it still running? The page goes on by itself when it is back.");
      }
      if (this.isClosed) return;
      clearTimeout(this.silence);
      this.connection?.abort();
      const wait = WAITS[Math.min(this.failures, WAITS.length - 1)] ?? 0;
      this.failures += 1;
      this.stand({ is: "broken", problem });
      // Many tabs of many people don't come back in the same moment.
      await new Promise((done) => setTimeout(done, wait * (0.75 + Math.random() / 2)));
    }
  }

  /** Reads one connection to its end; returns the problem if there was none to read. */
  private async follow(): Promise<ProblemDocument | undefined> {
    const { listing } = this;
    const connection = new AbortController();
    this.connection = connection;
    this.watchSilence(connection);
    const from = listing.token === undefined ? "" : `${this.address.includes("?") ? "&" : "?"}from=${encodeURIComponent(listing.token)}`;
    const headers = { accept: "text/event-stream" };
    const answer = await this.ask(`${this.address}${from}`, { signal: connection.signal, cache: "no-store", headers });
    if (!answer.ok || !answer.headers.get("content-type")?.startsWith("text/event-stream") || !answer.body) {
      // The token is of another project, or the catalog was replaced: nothing of before counts.
      if (answer.status === 400) listing.forget();
      return await refusal(answer);
    }
    if (this.kept && this.kept.length > 0) this.kept = undefined;
    listing.begin();
    const events = new Events();
    const decoder = new TextDecoder();
    const reader = answer.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return undefined;
      this.watchSilence(connection);
      this.heard = Date.now();
      this.kept?.push(value);
      let goesOn = true;
      for (const told of events.read(decoder.decode(value, { stream: true }))) {
        goesOn = listing.take(told);
        if (!goesOn) break;
        // The end of the listing, or of what was missed.
        if (listing.token !== undefined && (told.id === listing.token || told.name === "")) this.follows();
      }
      this.news();
      if (!goesOn) {
        this.failures = 0;
        return undefined;
      }
    }
  }

  private follows(): void {
    this.failures = 0;
    if (this.standing.is !== "following") this.stand({ is: "following" });
  }

  private stand(standing: Standing): void {
    this.standing = standing;
    // That is told at once, with all that is known by then.
    clearTimeout(this.timer);
    [this.timer, this.told] = [undefined, 0];
    this.news();
  }

  /** Tells what is new, at most so often. */
  private news(): void {
    if (this.timer !== undefined || this.isClosed) return;
    const wait = Math.max(0, this.told + BETWEEN - Date.now());
    this.timer = setTimeout(() => {
      this.timer = undefined;
      const moved = this.listing.flush();
      const isBeat = Date.now() - this.told > BEAT;
      if (!moved && !isBeat) return;
      this.told = Date.now();
      this.tell({ standing: this.standing, heard: this.heard, moved });
    }, wait);
  }

  private watchSilence(connection: AbortController): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => connection.abort(new Error("nothing was heard of it")), SILENCE);
  }
}

async function refusal(answer: Response): Promise<ProblemDocument> {
  try {
    const problem = (await answer.json()) as ProblemDocument;
    if (typeof problem.detail === "string" && typeof problem.code === "string") return problem;
  } catch {}
  return made("unreadable-answer", `The answer is ${answer.status}, and no stream.`, "Something between this page and the service answers in its place.");
}
