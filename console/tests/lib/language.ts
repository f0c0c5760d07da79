// A language server as an editor speaks with it: over the pipes of a program, or over the WebSocket of the console's page.

import { pathToFileURL } from "node:url";
import type { Page } from "playwright-core";
import type { Program } from "./program.ts";

/** The time after which an answer is missed, in milliseconds. */
const PATIENCE = 30_000;

/** A finding, as the protocol has it. */
export interface Told {
  range: { start: { line: number; character: number } };
  severity: number;
  code: string;
}

/** What brings messages there; what comes back is heard by `Language`. */
interface Wire {
  send(message: string): void;
  end(): void;
}

/** One conversation. Addresses of the project's files are cut to their paths, so that two conversations can be compared. */
export class Language {
  /** What is wrong, by path; nothing of files without a finding. */
  readonly found = new Map<string, Told[]>();
  private readonly waiting = new Map<number, { done: (result: unknown) => void; failed: (error: Error) => void }>();
  private readonly versions = new Map<string, number>();
  private asked = 0;
  private wire!: Wire;

  private constructor(private readonly root: string) {}

  /** Speaks with `watershed lsp` on the folder of a program. */
  static async overPipes(program: Program): Promise<Language> {
    const language = new Language(`${pathToFileURL(program.project)}/`);
    const child = program.speak("lsp");
    let rest = Buffer.alloc(0);
    child.stdout.on("data", (piece: Buffer) => {
      rest = Buffer.concat([rest, piece]);
      for (let end = rest.indexOf("\r\n\r\n"); end >= 0; end = rest.indexOf("\r\n\r\n")) {
        const length = Number(/content-length: *(\d+)/i.exec(rest.toString("latin1", 0, end))?.[1]);
        if (rest.length < end + 4 + length) return;
        language.hear(rest.toString("utf8", end + 4, end + 4 + length));
        rest = rest.subarray(end + 4 + length);
      }
    });
    const send = (message: string) => void child.stdin.write(`Content-Length: ${Buffer.byteLength(message)}\r\n\r\n${message}`);
    return language.begin({ send, end: () => void child.kill() });
  }

  /** Speaks over a WebSocket that a page of the console opens. */
  static async overPage(page: Page, name: string): Promise<Language> {
    const language = new Language(`watershed://${name}/`);
    await page.exposeFunction("heard", (message: string) => language.hear(message));
    await page.evaluate(async (path) => {
      const socket = new WebSocket(new URL(path, location.href.replace(/^http/, "ws")));
      const own = window as unknown as { heard(message: string): void; socket: WebSocket };
      own.socket = socket;
      socket.onmessage = ({ data }) => own.heard(data);
      await new Promise((opened, failed) => ([socket.onopen, socket.onerror] = [opened, failed]));
    }, `/v1/instances/${name}/lsp`);
    // One after the other: what is typed must not arrive in another order.
    let last: Promise<unknown> = Promise.resolve();
    const send = (message: string) => (last = last.then(() => page.evaluate((message) => (window as unknown as { socket: WebSocket }).socket.send(message), message)));
    const end = () => void last.then(() => page.evaluate(() => (window as unknown as { socket: WebSocket }).socket.close())).catch(() => {});
    return language.begin({ send, end });
  }

  open(path: string, text: string): void {
    this.versions.set(path, 0);
    this.tell("didOpen", { textDocument: { uri: this.root + path, languageId: path.endsWith(".sql") ? "sql" : "yaml", version: 0, text } });
  }
  type(path: string, text: string): void {
    const version = (this.versions.get(path) ?? 0) + 1;
    this.versions.set(path, version);
    this.tell("didChange", { textDocument: { uri: this.root + path, version }, contentChanges: [{ text }] });
  }
  close(path: string): void {
    this.tell("didClose", { textDocument: { uri: this.root + path } });
  }
  /** Asks about a place of a text, given by the characters before it. */
  at(what: "completion" | "hover", path: string, before: string): Promise<unknown> {
    const lines = before.split("\n");
    const position = { line: lines.length - 1, character: lines.at(-1)!.length };
    return this.ask(`textDocument/${what}`, { textDocument: { uri: this.root + path }, position });
  }
  end(): void {
    this.wire.end();
  }

  private async begin(wire: Wire): Promise<this> {
    this.wire = wire;
    await this.ask("initialize", { processId: null, rootUri: this.root, capabilities: {} });
    this.send({ method: "initialized", params: {} });
    return this;
  }
  private ask(method: string, params: object): Promise<unknown> {
    const id = ++this.asked;
    return new Promise((done, failed) => {
      const late = setTimeout(() => failed(new Error(`${this.root} did not answer ${method} ${JSON.stringify(params)}`)), PATIENCE);
      const over = () => (clearTimeout(late), this.waiting.delete(id));
      this.waiting.set(id, { done: (result) => (over(), done(result)), failed: (error) => (over(), failed(error)) });
      this.send({ id, method, params });
    });
  }
  private tell(what: string, params: object): void {
    this.send({ method: `textDocument/${what}`, params });
  }
  private send(message: object): void {
    this.wire.send(JSON.stringify({ jsonrpc: "2.0", ...message }));
  }
  private hear(message: string): void {
    const { id, method, params, result, error } = JSON.parse(message.replaceAll(this.root, ""));
    if (method === "textDocument/publishDiagnostics") {
      if (params.diagnostics.length > 0) this.found.set(params.uri, params.diagnostics);
      else this.found.delete(params.uri);
    }
    if (method !== undefined) return;
    if (error !== undefined) this.waiting.get(id)?.failed(new Error(JSON.stringify(error)));
    else this.waiting.get(id)?.done(result);
  }
}
