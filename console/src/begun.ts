// What every page begins with is asked for while the rest of its scripts still comes: who asks for it later finds it under way.

interface Begun {
  answer: Promise<Response>;
  end: AbortController;
}
const begun = new Map<string, Begun>();

function begin(address: string, headers: Record<string, string> = {}): void {
  const end = new AbortController();
  const answer = fetch(address, { headers, signal: end.signal, cache: "no-store" });
  // Whoever takes it is told of a failure.
  answer.catch(() => {});
  begun.set(address, { answer, end });
}

/** Asks as `fetch` does; takes what was begun where that is the same. Each answer is taken once. */
export function ask(address: string, init: RequestInit = {}): Promise<Response> {
  const one = (init.method ?? "GET") === "GET" ? begun.get(address) : undefined;
  if (!one) return fetch(address, init);
  begun.delete(address);
  const { signal } = init;
  const stop = () => one.end.abort(signal?.reason);
  if (signal?.aborted) stop();
  else signal?.addEventListener("abort", stop, { once: true });
  return one.answer;
}

/** The question about the latest runs, with which Activity begins. */
export const LATEST = "history?limit=500";

/** Computes the places of the graph; begun where the page has one. */
let worker: Worker | undefined;
const layouts = () => new Worker(new URL("./graph/layout.worker.ts", import.meta.url), { type: "module" });
export function takeLayouts(): Worker {
  const taken = worker ?? layouts();
  worker = undefined;
  return taken;
}

const base = new URL(document.baseURI).pathname.replace(/\/$/, "");
const [, instance, ...rest] = location.pathname.slice(base.length).split("/").filter(Boolean);
begin(`${base}/v1/me`);
begin(`${base}/v1/instances`);
// A name with other signs is left to those who know how to write it.
if (instance && /^[\w-]+$/.test(instance)) {
  const at = `${base}/v1/instances/${instance}`;
  begin(new URL(`${at}/watch`, location.href).href, { accept: "text/event-stream" });
  if (rest.length === 0) worker = layouts();
  else if (rest.join("/") === "activity" && !/outcome|select/.test(location.search)) begin(`${at}/${LATEST}`);
}
