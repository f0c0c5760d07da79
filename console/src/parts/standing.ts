// How a resource stands, in one word, with its colour and its shape. The same in graph, list and text.

import type { Schemas } from "../api";
import { alarm } from "./verdict";

/** A standing: also the name of its colour among those of the theme. */
export type Tone = "failed" | "fails" | "blocked" | "running" | "waiting" | "unready" | "stale" | "unbuilt" | "paused" | "ok" | "none";

/** What is shown of a standing. */
export interface Standing {
  tone: Tone;
  word: string;
  /** Where it stands in lists: what needs a person comes first. */
  rank: number;
}

type Of = { health: Schemas["Health"]; phase: Schemas["Phase"]; kind?: string; result?: unknown };

/** Words of tones, what needs a person first. */
const WORDS: Record<Tone, string> = {
  failed: "failed",
  fails: "fails",
  blocked: "blocked",
  running: "running",
  waiting: "waiting",
  unready: "not ready",
  stale: "stale",
  unbuilt: "never built",
  paused: "paused",
  ok: "ok",
  none: "not supported",
};

/** All tones, what needs a person first. */
export const TONES = Object.keys(WORDS) as Tone[];

const STANDINGS = new Map(TONES.map((tone, rank): [Tone, Standing] => [tone, { tone, word: WORDS[tone], rank }]));

/** Returns the standing of a tone. */
export function ofTone(tone: Tone): Standing {
  return STANDINGS.get(tone) as Standing;
}

const HEALTHS: Record<Schemas["Health"], Tone> = {
  failed: "failed",
  blocked: "blocked",
  unready: "unready",
  stale: "stale",
  never_built: "unbuilt",
  paused: "paused",
  ok: "ok",
  unsupported: "none",
};

/** Returns how a resource stands. */
export function standing({ health, phase, kind, result }: Of): Standing {
  const needsPerson = health === "blocked" || health === "paused";
  if (phase === "running") return ofTone("running");
  // The failure is of what was there before: the next run has been asked for.
  if (phase === "pending" && health === "failed") return { ...ofTone("waiting"), word: "waiting to be rebuilt" };
  const alarmed = health === "ok" && kind === "alert" ? alarm({ kind, result }) : undefined;
  if (alarmed) return { ...ofTone("fails"), word: alarmed };
  return ofTone(phase === "pending" && !needsPerson ? "waiting" : HEALTHS[health]);
}

/** The shapes of standings, in a square of 16 units: told apart without colour. A ring is drawn, the others are filled. */
export const SHAPES: Record<Tone, string> = {
  failed: "M8 1.5 15 14.5H1Z",
  fails: "M8 1.5c3 0 4.5 2 4.5 5 0 3 .8 4 2 5H1.5c1.2-1 2-2 2-5 0-3 1.5-5 4.5-5ZM6 13h4a2 2 0 0 1-4 0Z",
  blocked: "M2.5 2.5h11v11h-11Z",
  running: "M3.5 1.5 14 8 3.5 14.5Z",
  waiting: "M2 3h12v2.6H2ZM2 10.4h12V13H2Z",
  unready: "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 0 0 0-13ZM8 4a4 4 0 0 1 0 8Z",
  paused: "M3 2h3.6v12H3ZM9.4 2H13v12H9.4Z",
  stale: "M8 .8 15.2 8 8 15.2.8 8Z",
  unbuilt: "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 0 0 0-13ZM8 4a4 4 0 1 1 0 8a4 4 0 0 1 0-8Z",
  ok: "M8 2a6 6 0 1 0 0 12a6 6 0 0 0 0-12Z",
  none: "M2 6.8h12v2.4H2Z",
};
