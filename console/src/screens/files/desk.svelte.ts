// All that is open in one project, and what is done to its files.

import { problemOf, type ProblemDocument, type Schemas } from "../../api";
import { Language } from "../../editor/language.svelte";
import { Fetched } from "../../parts/fetched.svelte";
import type { Service } from "../../service";
import type { Store } from "../../store";
import { Going } from "./going.svelte";
import { forgetOthers, Keeper, type Kept } from "./kept";
import { moved, type Move } from "./moves";
import { Opened } from "./opened.svelte";

/** What was deleted or renamed last. */
interface Undo {
  files: { from: string; to?: string; bytes?: ArrayBuffer }[];
  hasTables: boolean;
  problem?: ProblemDocument;
}

export type FileEntry = Schemas["FileEntry"];

export class Desk {
  readonly files: Fetched<Schemas["FilesDocument"]>;
  readonly language: Language;
  readonly keeper: Keeper;
  readonly going: Going;
  open = $state.raw<ReadonlyMap<string, Opened>>(new Map());
  /** Texts that earlier visits left, of files that are not open. */
  left = $state.raw<Kept[]>([]);
  entries = $derived.by(() => new Map((this.files.value?.files ?? []).map((one) => [one.path, one])));
  undo = $state.raw<Undo>();
  unsaved = $derived([...this.open.values()].filter((one) => one.isUnsaved));

  constructor(
    readonly service: Service,
    readonly store: Store,
    person: string,
  ) {
    // Whoever is signed in now must not find another one's texts.
    forgetOthers(service.base, person);
    this.keeper = new Keeper(service.base, service.instance, person);
    this.left = this.keeper.all();
    this.files = new Fetched((signal) => service.get<Schemas["FilesDocument"]>("files", signal));
    const address = new URL(service.address("lsp"), location.href);
    address.protocol = address.protocol.replace("http", "ws");
    this.language = new Language(address.href, service.instance, (path) => this.open.get(path)?.isUnsaved ?? false);
    this.going = new Going(store);
  }

  /** Lists the files anew, and looks whether what is open has changed on disk. */
  async look(): Promise<void> {
    await this.files.reload();
    if (this.files.problem) return;
    await Promise.all([...this.open.values()].map((one) => one.look(this.entries.get(one.path)?.etag ?? undefined)));
  }

  /** Returns an open file; opens it where it isn't. */
  show(path: string): Opened {
    const known = this.open.get(path);
    if (known && known.standing !== "refused") return known;
    const opened = new Opened(path, this.service, this.keeper);
    this.open = new Map(this.open).set(path, opened);
    this.left = this.left.filter((kept) => kept.path !== path);
    opened.loading = opened.load();
    return opened;
  }
  /** Begins a file that does not exist yet. */
  begin(path: string, text = ""): void {
    const opened = new Opened(path, this.service, this.keeper);
    opened.begin(text);
    this.open = new Map(this.open).set(path, opened);
  }
  /** Puts a file away; what is unsaved of it stays kept, and is offered again. */
  leave(path: string): void {
    this.open.get(path)?.close();
    this.open = new Map([...this.open].filter(([one]) => one !== path));
    this.language.release(path);
    this.left = this.keeper.all().filter((kept) => !this.open.has(kept.path));
  }
  forgetLeft(kept: Kept): void {
    this.keeper.forget(kept.key);
    this.left = this.left.filter(({ key }) => key !== kept.key);
  }

  /** Saves a file, and follows what that sets going. */
  async save(opened: Opened, ...how: Parameters<Opened["save"]>): Promise<boolean> {
    const follow = this.going.begin(opened.path);
    const change = await opened.save(...how);
    if (!change) return false;
    follow(change);
    this.language.release(opened.path);
    void this.files.reload();
    return true;
  }

  /** Returns what the texts would break, of which nothing is broken now. Throws a refusal. */
  async check(texts: Record<string, string | null>): Promise<Schemas["Diagnostic"][]> {
    const [now, then] = await Promise.all([
      this.service.get<Schemas["DiagnosticsDocument"]>("diagnostics"),
      this.service.ask<Schemas["DiagnosticsDocument"]>("check", { files: texts }),
    ]);
    const keyOf = ({ path, code, message }: Schemas["Diagnostic"]) => JSON.stringify([path, code, message]);
    const known = new Set(now.diagnostics.map(keyOf));
    return then.diagnostics.filter((one) => one.severity === "error" && !known.has(keyOf(one)));
  }

  /**
   * Renames or deletes files, one after the other, and remembers the way back. Returns the refusal, if one was refused; those
   * before it have moved.
   */
  async moveAll({ what, from, entries }: Exclude<Move, { what: "new" }>, to: string): Promise<ProblemDocument | undefined> {
    const undo: Undo = { files: [], hasTables: false };
    let refused: ProblemDocument | undefined;
    for (const entry of entries) {
      const next = what === "rename" ? moved(entry.path, from, to) : undefined;
      const done = await this.move(entry, next);
      if ("problem" in done) {
        refused = done.problem;
        break;
      }
      undo.files.push({ from: entry.path, ...(next === undefined ? { bytes: done.bytes } : { to: next }) });
      undo.hasTables ||= entry.declares.some(({ kind }) => kind === "model" || kind === "source");
    }
    if (undo.files.length > 0) this.undo = undo;
    await this.files.reload();
    return refused;
  }

  /** Undoes what was moved last. Returns true if all of it came back. */
  async back(): Promise<boolean> {
    const undo = this.undo;
    if (!undo) return false;
    const left = [...undo.files];
    for (let one = left.at(-1); one; one = left.at(-1)) {
      const follow = this.going.begin(one.to ?? one.from, "Brought back");
      try {
        const change =
          one.to === undefined
            ? await this.service.change<Schemas["FileChange"]>("PUT", this.service.fileOf(one.from), one.bytes, { "if-none-match": "*", "content-type": "text/plain" })
            : await this.rename(one.to, one.from, "*");
        if (one.to !== undefined) this.leave(one.to);
        follow(change);
        left.pop();
      } catch (error) {
        this.undo = { ...undo, files: left, problem: problemOf(error) };
        return false;
      }
    }
    this.undo = undefined;
    await this.files.reload();
    return true;
  }

  private rename(from: string, to: string, version: string): Promise<Schemas["FileChange"]> {
    return this.service.change("POST", "rename-file", JSON.stringify({ from, to }), { "if-match": version, "content-type": "application/json" });
  }

  /** Renames a file, or deletes it where there is no new path. Returns what it held, or the refusal. */
  private async move({ path, etag }: FileEntry, to: string | undefined): Promise<{ bytes: ArrayBuffer } | { problem: ProblemDocument }> {
    const follow = this.going.begin(path, to === undefined ? "Deleted" : "Renamed");
    const version = etag ?? "*";
    try {
      const bytes = await (await this.service.open(this.service.fileOf(path), undefined, "*/*", AbortSignal.timeout(30_000))).arrayBuffer();
      const change = to === undefined ? await this.service.change<Schemas["FileChange"]>("DELETE", this.service.fileOf(path), undefined, { "if-match": version, "content-type": "application/json" }) : await this.rename(path, to, version);
      const was = this.open.get(path);
      const typed = was?.isDirty ? { text: was.text, over: was.base?.etag } : undefined;
      was?.forget();
      this.leave(path);
      // What was typed goes along with the name, and so does the version that it was typed over.
      if (to !== undefined && typed) void this.show(to).loading.then(() => this.open.get(to)?.overtake(typed.text, typed.over));
      follow(change);
      return { bytes };
    } catch (error) {
      return { problem: problemOf(error) };
    }
  }

  close = (): void => {
    this.open.forEach((one) => one.close());
    this.language.close();
    this.files.stop();
  };
}
