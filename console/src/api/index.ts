// Types of the service's own description, and what a refusal is.
import type { components } from "./types";
export type Schemas = components["schemas"];
export type ProblemDocument = Schemas["ProblemDocument"];

/** A request without an answer. */
export class Refused extends Error {
  constructor(readonly problem: ProblemDocument) {
    super(problem.detail);
  }
}

/** Reads the problem of anything that was thrown. */
export function problemOf(error: unknown): ProblemDocument {
  if (typeof error === "object" && error !== null && "problem" in error) return error.problem as ProblemDocument;
  const detail = error instanceof Error ? error.message : String(error);
  return made("unavailable", `The service does not answer: ${detail}`, "Is it still running? The page goes on by itself when it is back.");
}

/** A problem that the page found itself. */
export function made(code: string, detail: string, hint: string): ProblemDocument {
  return { type: `problems/${code}`, title: code, status: 0, code, detail, hint, retryable: true };
}
