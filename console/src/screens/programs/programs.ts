// What programs' documents hold, and what is done to copies by hand, in words and numbers.

import type { Tone } from "../../parts/standing";
import { count } from "../../parts/words";

/** The last end of a process. */
export interface Exit {
  end: string;
  at: string;
  after_ms: number;
  /** True if it was asked to end. */
  intended: boolean;
}

/** The results of a check of one copy, the oldest first. */
export interface CheckOfCopy {
  check: string;
  passing: boolean;
  results: { at: string; start: number; result: string }[];
}

/** A copy of a service. */
export interface Copy {
  number: number;
  release: number;
  stage: string;
  reason: string;
  since: string | null;
  message: string | null;
  process: string | null;
  ports: Record<string, number>;
  last_exit: Exit | null;
  /** Failures in a row, and the number of them after which a person must look; 0 is without end. */
  failures: number;
  attempts: number;
  next_start: string | null;
  checks?: CheckOfCopy[];
}

/** The result of a service. */
export interface ServiceResult {
  stage: string;
  release: number;
  released_at: string | null;
  /** The release that is to take the place of the active one. */
  candidate: number | null;
  replicas_wanted: number;
  replicas_ready: number;
  replicas_completed: number;
  ports: Record<string, number[]>;
  replicas?: Copy[];
}

/** The result of a job. */
export interface JobResult {
  stage: string;
  reason: string;
  since: string | null;
  process: string | null;
  last_exit: Exit | null;
  failures: number;
  next_start: string | null;
}

/** The part of a service's spec that decides what an action does. */
export interface ServiceSpec {
  replicas: number;
  rollout: { surge: number; strategy: string };
  program: { ports: { fixed: number }[] };
}

/** An action on the copies of a service. */
export type Deed =
  | { verb: "restart"; now: boolean }
  /** `replicas` is null for the number of the file. */
  | { verb: "scale"; replicas: number | null }
  /** `to` is null for the release before. */
  | { verb: "rollback"; to: number | null };

/** Returns the copies of a service, in order. */
export function copiesOf(result: unknown): Copy[] {
  const copies = (result as ServiceResult | null | undefined)?.replicas;
  return Array.isArray(copies) ? copies : [];
}

/** Returns true if a copy has failed again and again, and waits before its next start or for a person. */
export function isLooping({ stage, failures }: { stage: string; failures: number }): boolean {
  return failures > 0 && (stage === "backing_off" || stage === "failed");
}

const TONES: Record<string, Tone> = {
  ready: "ok",
  completed: "ok",
  running: "unready",
  rolling_out: "running",
  starting: "running",
  pending: "waiting",
  stopping: "waiting",
  backing_off: "failed",
  failed: "failed",
  stopped: "paused",
  gone: "none",
};

/** Returns the tone of a stage of a job or a copy; a service that runs is well once enough of it is ready. */
export function toneOf(stage: string, isReady = false): Tone {
  return stage === "running" && isReady ? "ok" : (TONES[stage] ?? "none");
}

/** Returns the words for what an action will do, to how many copies. */
export function effect(deed: Deed, result: ServiceResult, spec: ServiceSpec | undefined): string {
  const wanted = result.replicas_wanted;
  const copies = count(wanted, "copy").replace(/copys$/, "copies");
  switch (deed.verb) {
    case "restart": {
      if (wanted === 0) return "There is no copy that it could restart.";
      if (deed.now) return `Stops ${copies} at once and starts ${wanted === 1 ? "it" : "them"} anew. Until ${wanted === 1 ? "it is" : "they are"} ready nothing answers.`;
      const isInPlace = spec?.program.ports.some(({ fixed }) => fixed > 0) ?? false;
      return isInPlace
        ? `Restarts ${copies} in ${wanted === 1 ? "its place" : "their places"}, as many at a time as the service may miss.`
        : `Starts ${wanted.toLocaleString()} new ${wanted === 1 ? "copy" : "copies, each"} before the old one that it replaces ends.`;
    }
    case "scale": {
      const to = deed.replicas ?? spec?.replicas ?? wanted;
      const file = deed.replicas === null ? ", the number of the file" : "";
      const difference = Math.abs(to - wanted);
      const ones = difference === 1 ? "copy" : "copies";
      if (difference === 0) return `Changes nothing: ${copies} ${wanted === 1 ? "is" : "are"} wanted already${file}.`;
      if (to === 0) return `Ends all ${copies}: nothing answers any more.`;
      const verb = to > wanted ? "Starts" : "Ends";
      return `${verb} ${difference.toLocaleString()} ${ones}: ${to.toLocaleString()} in the place of ${wanted.toLocaleString()}${file}.`;
    }
    case "rollback": {
      const to = deed.to === null ? "the release before that came up" : `release ${deed.to.toLocaleString()}`;
      return `Replaces ${copies} of release ${result.release.toLocaleString()} by ${to}, until the file changes.`;
    }
  }
}

/** Colours and other manners of a terminal, which say nothing that a page could not. */
const MANNERS = /\u001b\[[0-9;:]*m/g;

/** Returns a line of output without the colours of a terminal. All other marks stay, and are shown as what they are. */
export function plain(text: string): string {
  return text.replace(MANNERS, "");
}

/** Returns the lines that contain the searched letters, large or small. */
export function searched<T extends { text: string }>(lines: readonly T[], letters: string): T[] {
  const wanted = letters.trim().toLowerCase();
  return wanted === "" ? [...lines] : lines.filter(({ text }) => plain(text).toLowerCase().includes(wanted));
}
