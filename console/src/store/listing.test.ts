// The listing against a naive reference: a service that is kept whole at every change.

import { expect, test } from "vitest";
import { random, SEED } from "../../tests/lib/random";
import { Events } from "./events";
import { keyOf, Listing, type ResourceDocument } from "./listing";

/** The streams that are tried: WATERSHED_PROOF=ci has its share, and everybody else a few seconds. */
const STREAMS = process.env.WATERSHED_PROOF === "full" ? 10_000 : process.env.WATERSHED_PROOF === "ci" ? 2_000 : 500;

type State = Map<string, ResourceDocument>;

/** A service that remembers every state it was in. */
class Reference {
  catalog = 1;
  states: State[] = [new Map()];
  /** Tokens of states before this one are too old. */
  kept = 0;

  constructor(private readonly pick: (below: number) => number) {}

  get now(): State {
    return this.states.at(-1) as State;
  }

  get token(): string {
    return `${this.catalog}.${this.states.length - 1}`;
  }

  change(): void {
    const next = new Map(this.now);
    for (let number = this.pick(4); number >= 0; number--) {
      const of = { kind: ["model", "source"][this.pick(2)] as string, name: `n${this.pick(12)}` };
      const key = keyOf(of);
      const was = next.get(key);
      if (this.pick(4) === 0) next.delete(key);
      else if (was && this.pick(2) === 0) next.set(key, { ...was, ...HEALTHS[this.pick(HEALTHS.length)] } as ResourceDocument);
      else next.set(key, { ...of, ...HEALTHS[0], spec_version: this.states.length } as unknown as ResourceDocument);
    }
    this.states.push(next);
  }

  /** Puts another project, or a backup, in the place of all that there is. */
  replace(): void {
    this.catalog += 1;
    this.states = [new Map()];
    this.kept = 0;
    this.change();
  }

  /** The text from a token to now; the refusal of a token of another catalog is none. */
  from(token: string | undefined): string | undefined {
    if (token === undefined) return batch([...told(new Map(), this.now), ["listed", {}]], this.token);
    const [catalog, state] = token.split(".").map(Number) as [number, number];
    if (catalog !== this.catalog) return undefined;
    if (state < this.kept) return 'event: lagged\ndata: {"hint":"list again"}\n\n';
    return `${batch(told(this.states[state] as State, this.now), this.token)}: \n\n`;
  }
}

const HEALTHS = [
  { phase: "idle", health: "ok" },
  { phase: "running", health: "stale" },
  { phase: "idle", health: "failed" },
];

/** What a service tells of the way from one state to another. */
function told(before: State, after: State): [string, unknown][] {
  const events: [string, unknown][] = [];
  for (const [key, document] of before) {
    if (!after.has(key)) events.push(["gone", { kind: document.kind, name: document.name }]);
  }
  for (const [key, document] of after) {
    const was = before.get(key);
    const { kind, name, phase, health } = document;
    if (!was || was.spec_version !== document.spec_version) events.push(["changed", document]);
    else if (was !== document) events.push(["status", { kind, name, phase, health }]);
  }
  return events;
}

function batch(events: [string, unknown][], token: string): string {
  const last = events.length - 1;
  const texts = events.map(([name, data], at) => `event: ${name}\n${at === last ? `id: ${token}\n` : ""}data: ${JSON.stringify(data)}\n\n`);
  return texts.join("");
}

/** Fails unless two states say the same. */
function equal(one: State, other: State | undefined, seed: number): void {
  const text = (state: State) => [...state].map(([key, { phase, health, spec_version }]) => `${key} ${phase} ${health} ${spec_version}`).sort().join("\n");
  const [a, b] = [text(one), text(other ?? new Map())];
  if (a !== b) expect(a, `seed ${seed}`).toBe(b);
}

test("what is shown is what there is, however streams are cut", { timeout: 600_000 }, () => {
  for (let number = 0; number < STREAMS; number++) {
    const seed = SEED + number;
    const pick = random(seed);
    const service = new Reference(pick);
    const listing = new Listing();
    const page: State = new Map();
    const look = () => {
      const moved = listing.flush();
      if (moved?.isWhole) page.clear();
      for (const document of moved?.put ?? []) page.set(keyOf(document), document);
      for (const key of moved?.gone ?? []) page.delete(key);
      equal(page, listing.shown, seed);
    };
    let catalog = 0;
    for (let connection = 0; connection < 8; connection++) {
      for (let changes = pick(4); changes > 0; changes--) service.change();
      if (pick(6) === 0) service.kept = service.states.length - 1;
      if (pick(8) === 0) service.replace();
      const opened = service.from(listing.token);
      if (opened === undefined) {
        listing.forget();
        continue;
      }
      listing.begin();
      const events = new Events();
      let text = opened;
      let isOver = opened.includes("event: lagged");
      for (let round = pick(4); ; round--) {
        const isLast = round <= 0;
        const cut = isLast && connection < 7 && pick(3) > 0 ? pick(text.length + 1) : text.length;
        for (let at = 0; at < cut; ) {
          const end = Math.min(cut, at + 1 + pick(40));
          for (const one of events.read(text.slice(at, end))) if (!listing.take(one)) isOver = true;
          at = end;
          if (pick(3) === 0) look();
        }
        if (listing.token !== undefined) {
          catalog = Number(listing.token.split(".")[0]);
          if (cut === text.length) equal(listing.shown, service.now, seed);
        }
        // What is shown is always a whole state of the catalog that the token is of.
        const state = listing.token?.split(".")[1];
        if (catalog === service.catalog && state) equal(listing.shown, service.states[Number(state)], seed);
        if (isLast || isOver) break;
        const before = service.now;
        service.change();
        text = batch(told(before, service.now), service.token);
      }
      look();
    }
    // In the end the line holds.
    for (let tries = 0; tries < 3; tries++) {
      const text = service.from(listing.token);
      if (text === undefined) {
        listing.forget();
        continue;
      }
      listing.begin();
      for (const one of new Events().read(text)) listing.take(one);
    }
    look();
    equal(page, service.now, seed);
  }
});

test("a listing without an end is given up", () => {
  const listing = new Listing();
  listing.begin();
  const endless = () => {
    for (let number = 0; ; number++) listing.take({ name: "changed", data: `{"kind":"model","name":"n${number}"}`, id: undefined });
  };
  expect(endless).toThrow(/no end of them/);
  expect(() => [...new Events().read("data: ".padEnd(33 << 20, "x"))]).toThrow(/does not end/);
});
