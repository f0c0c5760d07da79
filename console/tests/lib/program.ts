// The real program on a project of its own folder, on a port that the system gives.

import { spawn, type ChildProcess, type ChildProcessByStdio } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

/** The repository. */
export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");

/** The program, with the folder of its libraries: that of the tests of Rust, or the one that a variable names. */
const PROGRAM = process.env.WATERSHED_PROGRAM ?? join(ROOT, "target/debug/watershed-under-test");

/** The reason why the program can't be tried here; none if it can. */
export function lacksProgram(): string | undefined {
  return existsSync(PROGRAM) ? undefined : `there is no program at ${PROGRAM}`;
}

/** Whatever has to go when the tests end, however they end. */
const rests = new Set<() => void>();
process.on("exit", () => rests.forEach((end) => end()));

/** A folder that goes away with the tests. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "watershed-console-"));
  rests.add(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** The last words of a program that are kept. */
const KEPT = 64 << 10;

/** Words of the program about itself, of the form `answers at http://127.0.0.1:1`. */
const ADDRESS = /answers at http:\/\/127\.0\.0\.1:(\d+)/;

/** What the program finds about it: its libraries, and no network that it would ask for extensions. */
function environment(): NodeJS.ProcessEnv {
  return {
    ...process.env,
    LD_LIBRARY_PATH: join(dirname(PROGRAM), "deps"),
    WATERSHED_NO_EXTENSION_INSTALL: "true",
    NO_COLOR: "1",
  };
}

/** A process that serves one project. */
export class Program {
  private child: ChildProcess | undefined;
  /** The port that it listens on. */
  port = 0;
  /** All that it has written. */
  said = "";

  private constructor(
    readonly project: string,
    readonly base: string,
  ) {}

  /** Starts the program on a project, below a path prefix, and waits until it answers. */
  static async start(project: string, base = ""): Promise<Program> {
    const program = new Program(project, base);
    await program.start();
    return program;
  }

  /** Starts it again on the port that it had, or on a new one the first time. */
  async start(): Promise<void> {
    const listen = `--listen=127.0.0.1:${this.port}`;
    const base = this.base === "" ? [] : ["--base", this.base];
    const child = spawn(PROGRAM, ["start", listen, ...base, "-C", this.project], {
      env: environment(),
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.child = child;
    const kill = () => child.kill("SIGKILL");
    rests.add(kill);
    child.once("exit", () => rests.delete(kill));
    this.said = "";
    await new Promise<void>((begun, failed) => {
      const read = (piece: Buffer) => {
        this.said = (this.said + piece.toString()).slice(-KEPT);
        const found = ADDRESS.exec(this.said);
        if (!found) return;
        this.port = Number(found[1]);
        begun();
      };
      child.stdout?.on("data", read);
      child.stderr?.on("data", read);
      child.once("error", failed);
      child.once("exit", (code) => failed(new Error(`the program ended with ${code}: ${this.said}`)));
    });
  }

  /** The address of the console. */
  get home(): string {
    return `http://127.0.0.1:${this.port}${this.base}/`;
  }

  /** Runs another command of the program on the project, to its end. */
  async run(...words: string[]): Promise<void> {
    const child = spawn(PROGRAM, [...words, "-C", this.project], { env: environment(), stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    child.stdout.on("data", (piece) => (said += piece));
    child.stderr.on("data", (piece) => (said += piece));
    const code = await new Promise((done, failed) => child.once("error", failed).once("exit", done));
    if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}: ${said}`);
  }

  /** Runs another command with an input, and returns what it writes. */
  async answer(input: string, ...words: string[]): Promise<string> {
    const child = spawn(PROGRAM, [...words, "-C", this.project], { env: environment(), stdio: ["pipe", "pipe", "pipe"] });
    let [said, told] = ["", ""];
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (piece) => (told += piece));
    child.stderr.on("data", (piece) => (said += piece));
    child.stdin.end(input);
    const code = await new Promise((done, failed) => child.once("error", failed).once("close", done));
    if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}: ${said}`);
    return told;
  }

  /** Starts another command on the project, to speak with it while it runs. */
  speak(...words: string[]): ChildProcessByStdio<Writable, Readable, null> {
    const child = spawn(PROGRAM, [...words, "-C", this.project], { env: environment(), stdio: ["pipe", "pipe", "ignore"] });
    const kill = () => child.kill("SIGKILL");
    rests.add(kill);
    child.once("exit", () => rests.delete(kill));
    return child;
  }

  /** Stops it, and waits for its end. */
  async stop(signal: NodeJS.Signals = "SIGINT"): Promise<void> {
    const child = this.child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((end) => child.once("exit", end));
    child.kill(signal);
    await ended;
    this.child = undefined;
  }

  /** The address of the service. */
  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Asks the API below the instance, apart from any browser. */
  async ask<T = any>(path: string, options: { method?: string; body?: unknown; wait?: number } = {}): Promise<T> {
    const { status, text } = await this.send(path, options);
    if (status >= 300) throw new Error(`${path}: ${status} ${text}`);
    return JSON.parse(text) as T;
  }

  private async instance(): Promise<string> {
    const { text } = await send(`${this.origin}${this.base}/v1/instances`, "GET", {});
    return JSON.parse(text).instances[0].name;
  }

  private async send(path: string, options: { method?: string; body?: unknown; wait?: number }) {
    const at = `${this.origin}${this.base}/v1/instances/${await this.instance()}/${path}`;
    const headers: Record<string, string> = {};
    if (options.wait) headers.prefer = `wait=${options.wait}`;
    const body = options.body === undefined ? undefined : JSON.stringify(options.body);
    if (body !== undefined) headers["content-type"] = "application/json";
    return send(at, options.method ?? "GET", headers, body);
  }

  /** Brings all up to date and waits for that. */
  async settle(): Promise<void> {
    await this.ask("run", { method: "POST", body: {}, wait: 60 });
  }

  /** All resources, page by page. */
  async list(query = ""): Promise<any[]> {
    const all = [];
    for (let page = ""; ; ) {
      const answer = await this.ask(`resources?limit=1000${query}${page}`);
      all.push(...answer.resources);
      if (!answer.next) return all;
      page = `&page=${answer.next}`;
    }
  }
}

/** One connection for each request: the service counts them by address. */
function send(at: string, method: string, headers: Record<string, string>, body?: string) {
  return new Promise<{ status: number; text: string }>((done, failed) => {
    const asked = request(at, { method, headers, agent: false }, (answer) => {
      const pieces: Buffer[] = [];
      answer.on("data", (piece) => pieces.push(piece));
      answer.on("end", () => done({ status: answer.statusCode ?? 0, text: Buffer.concat(pieces).toString() }));
      answer.on("error", failed);
    });
    asked.on("error", failed);
    asked.end(body);
  });
}
