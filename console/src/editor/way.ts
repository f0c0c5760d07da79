// The way to a language server over a WebSocket.
//
// 1. Each request gets one answer: one that comes twice, or that nobody asked for, is left out.
// 2. A request that the end of the connection leaves without an answer is answered by nothing, and so is one that fails: no
//    proposal and no hint is worth an error.

import type { Transport } from "@codemirror/lsp-client";

type Handler = (message: string) => void;

/** A connection. */
export class Way implements Transport {
  private readonly handlers = new Set<Handler>();
  /** The methods of requests without an answer, by their number. */
  private readonly waiting = new Map<number, string>();
  private isOver = false;

  constructor(private readonly socket: Pick<WebSocket, "send" | "readyState">) {}

  send(message: string): void {
    if (this.isOver || this.socket.readyState !== 1) return;
    const { id, method } = JSON.parse(message) as { id?: number; method?: string };
    if (id !== undefined && method !== undefined) this.waiting.set(id, method);
    this.socket.send(message);
  }
  subscribe(handler: Handler): void {
    this.handlers.add(handler);
  }
  unsubscribe(handler: Handler): void {
    this.handlers.delete(handler);
  }

  /** Takes a message of the server. */
  hear(message: string): void {
    let said: { id?: number; method?: string; error?: unknown };
    try {
      said = JSON.parse(message);
    } catch {
      return;
    }
    if (typeof said !== "object" || said === null) return;
    if (said.method !== undefined) return this.tell(message);
    if (said.id === undefined || !this.waiting.has(said.id)) return;
    if (said.error !== undefined) return this.answer(said.id);
    this.waiting.delete(said.id);
    this.tell(message);
  }

  /** Ends it. */
  end(): void {
    this.isOver = true;
    for (const id of [...this.waiting.keys()]) this.answer(id);
  }

  /** Answers a request with nothing. */
  private answer(id: number): void {
    const result = this.waiting.get(id) === "initialize" ? { capabilities: {} } : null;
    this.waiting.delete(id);
    this.tell(JSON.stringify({ jsonrpc: "2.0", id, result }));
  }
  private tell(message: string): void {
    this.handlers.forEach((handle) => handle(message));
  }
}
