// The API of one project.
import { ask } from "./begun";
import { made, Refused, type ProblemDocument } from "./api";

/** The largest answer that is read. */
const LARGEST = 64 << 20;
/** How long an answer is waited for. */
const PATIENCE = 70_000;

export class Service {
  constructor(readonly base: string, readonly instance: string) {}
  address(path: string): string {
    return `${this.base}/v1/instances/${encodeURIComponent(this.instance)}/${path}`;
  }
  fileOf(path: string): string {
    return `files/${path.split("/").map(encodeURIComponent).join("/")}`;
  }
  pathOf({ kind, name }: { kind: string; name: string }): string {
    return `resources/${encodeURIComponent(kind)}/${encodeURIComponent(name)}`;
  }
  async get<T>(path: string, signal?: AbortSignal, headers: Record<string, string> = {}): Promise<T> {
    return (await this.json<T>(path, { headers }, signal)).body;
  }
  async post<T>(path: string, body: unknown = {}, type = "application/json"): Promise<{ status: number; body: T }> {
    return this.json<T>(path, { method: "POST", body: JSON.stringify(body), headers: { "content-type": type } });
  }
  /** Asks with a body, on behalf of somebody else where headers name one; given up by the signal. */
  async ask<T>(path: string, body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<T> {
    const init = { method: "POST", body: JSON.stringify(body), headers: { ...headers, "content-type": "application/json" } };
    return (await this.json<T>(path, init, signal)).body;
  }
  /** Changes something under conditions that the headers say. */
  async change<T>(method: "PUT" | "POST" | "DELETE", path: string, body: BodyInit | undefined, headers: Record<string, string>): Promise<T> {
    return (await this.json<T>(path, { method, headers, ...(body !== undefined && { body }) })).body;
  }
  /** Asks for a file of one media type; none where the service answers in another one. */
  async file(path: string, body: unknown, type: string, headers: Record<string, string> = {}): Promise<Blob | undefined> {
    const answer = await fetch(this.address(path), { method: "POST", body: JSON.stringify(body), headers: { ...headers, "content-type": "application/json", accept: type } });
    if (answer.status === 406 || answer.status === 415) return undefined;
    if (!answer.ok) throw refusal(answer, await bounded(answer));
    if (answer.headers.get("content-type")?.split(";")[0]?.trim() === type) return answer.blob();
    await answer.body?.cancel();
    return undefined;
  }
  /** Asks for an answer that is read while it comes; its end is not waited for, and the signal gives it up. Throws a refusal. */
  async open(path: string, body: unknown, accept: string, signal: AbortSignal): Promise<Response> {
    const asks = body === undefined ? { headers: { accept } } : { method: "POST", body: JSON.stringify(body), headers: { accept, "content-type": "application/json" } };
    const answer = await fetch(this.address(path), { ...asks, signal });
    if (!answer.ok) throw refusal(answer, await bounded(answer));
    return answer;
  }
  async text(path: string, signal?: AbortSignal): Promise<string> {
    return (await send(this.address(path), {}, signal)).text;
  }
  private async json<T>(path: string, init: RequestInit, signal?: AbortSignal): Promise<{ status: number; body: T }> {
    return parsed<T>(await send(this.address(path), init, signal));
  }
}

/** Reads what stands above the projects. */
export async function read<T>(address: string): Promise<T> {
  return parsed<T>(await send(address, {})).body;
}

function parsed<T>({ status, text }: { status: number; text: string }): { status: number; body: T } {
  try {
    return { status, body: JSON.parse(text) as T };
  } catch {
    throw new Refused(made("unreadable-answer", "The answer is no JSON, or ends in the middle.", "Something between this page and the service may have cut it. Try again."));
  }
}

async function send(address: string, init: RequestInit, signal?: AbortSignal): Promise<{ status: number; text: string }> {
  const patience = AbortSignal.timeout(PATIENCE);
  const answer = await ask(address, { ...init, signal: signal ? AbortSignal.any([signal, patience]) : patience });
  const text = await bounded(answer);
  if (answer.ok) return { status: answer.status, text };
  throw refusal(answer, text);
}

/** The refusal that an answer is. */
function refusal(answer: Response, text: string): Refused {
  let problem: ProblemDocument | undefined;
  if (answer.headers.get("content-type")?.startsWith("application/problem+json")) {
    try {
      problem = JSON.parse(text) as ProblemDocument;
    } catch {}
  }
  return new Refused(problem ?? { ...made("unreadable-answer", `The answer is ${answer.status} without a problem that can be read.`, "Something between this page and the service answers in its place."), status: answer.status });
}
async function bounded(answer: Response): Promise<string> {
  const reader = answer.body?.getReader();
  if (!reader) return "";
  const decoder = new TextDecoder();
  let [text, size] = ["", 0];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    size += value.byteLength;
    if (size > LARGEST) {
      await reader.cancel();
      throw new Refused(made("unreadable-answer", "The answer does not end.", "It was given up. Ask for less."));
    }
    text += decoder.decode(value, { stream: true });
  }
}
