// What an alert found when it was last evaluated.

/** The rows that an evaluation kept. */
export interface Rows {
  columns: string[];
  rows: (string | null)[][];
}

interface Evaluation {
  at: string;
  error: { message: string } | null;
  left_out: number | null;
  rows: Rows | null;
  verdict: string;
  /** Keys of the messages that it sent. */
  told: string[];
}

/** A message to one receiver, as the result of a notification has it. */
export interface Message {
  title: string;
  receiver: string;
  standing: "waiting" | "delivered" | "dead";
  at: string | null;
  attempts: number;
  failure: string | null;
}

/** The result of an alert. */
export interface Found {
  verdict: string;
  told: { at: string; verdict: string } | null;
  snoozed_until: string | null;
  history: Evaluation[];
}

/** Returns what an alert found; none of other resources, and before its first evaluation. */
export function found({ kind, result }: { kind?: string; result?: unknown }): Found | undefined {
  const is = result as Found | null | undefined;
  return kind === "alert" && typeof is?.verdict === "string" ? is : undefined;
}

/** Returns a word on an alert whose rows people should know of; none where there is nothing to know. */
export function alarm(of: { kind?: string; result?: unknown }): string | undefined {
  const is = found(of);
  if (is?.verdict !== "fail") return undefined;
  if (is.snoozed_until && Date.parse(is.snoozed_until) > Date.now()) return "fails, snoozed";
  return is.told?.verdict === "fail" ? "fails, told" : "fails";
}
