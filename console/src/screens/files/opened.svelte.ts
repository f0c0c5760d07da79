// A file that is open: what stands on disk, what was typed, and what to do where both went on.
//
// 1. `base` is the version that was typed over. Only this version is ever replaced by a save.
// 2. What was typed is lost only by a person's choice.

import type { EditorState } from "@codemirror/state";
import { made, problemOf, type ProblemDocument, type Schemas } from "../../api";
import type { Service } from "../../service";
import type { Keeper, Kept } from "./kept";
import { given, PLAIN, taken, type Shape } from "./shape";

/** A version of a file on disk. */
export interface Version {
  text: string;
  shape: Shape;
  etag: string;
}

/** The time for which keys are gathered before a text is kept, in milliseconds. */
const GATHERING = 250;

export class Opened {
  standing = $state<"loading" | "ready" | "refused">("loading");
  /** The version that was typed over; none for a file that is new. */
  base = $state.raw<Version>();
  text = $state("");
  /** What stands on disk by now in place of `base`, where it is not what stands here: `gone` if there is no file. */
  theirs = $state.raw<Version | "gone">();
  /** Why it can't be read, or was not saved. */
  problem = $state.raw<ProblemDocument>();
  isSaving = $state(false);
  /** Texts of earlier visits and of other tabs. */
  offers = $state.raw<Kept[]>([]);
  /** True if the browser has no room for what was typed. */
  isUnkept = $state(false);
  /** The editor's state while nobody looks. */
  editor: EditorState | undefined;
  /** Puts another text into the editor, where one shows it. */
  show: ((text: string) => void) | undefined;

  private readonly key: string;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asked = 0;
  /** True once nothing of it is kept any more. */
  private isForgotten = false;

  constructor(
    readonly path: string,
    private readonly service: Service,
    private readonly keeper: Keeper,
  ) {
    this.key = keeper.open(path);
    this.offers = keeper.all().filter((kept) => kept.path === path);
  }

  /** Ends once it was read. */
  loading: Promise<void> = Promise.resolve();

  // Asked each time: a value that Svelte keeps ends with the page, and a save may end after it.
  get isDirty(): boolean {
    return this.standing === "ready" && this.text !== (this.base?.text ?? "");
  }
  /** True if there is something to be saved: a new file may be empty. */
  get isUnsaved(): boolean {
    return this.isDirty || (this.standing === "ready" && this.base === undefined);
  }

  /** Begins a file that does not exist yet. */
  begin(text: string): void {
    this.text = text;
    this.standing = "ready";
    this.keep();
  }

  /** Reads it. */
  async load(): Promise<void> {
    try {
      const version = await this.read();
      if (version === "gone") throw { problem: made("unknown-name", `There is no file “${this.path}”.`, "It may have been renamed or deleted, or the manifest leaves it out.") };
      this.base = version;
      this.text = version.text;
      this.problem = undefined;
      this.standing = "ready";
    } catch (error) {
      this.problem = problemOf(error);
      this.standing = "refused";
    }
  }

  /** Takes what was typed. */
  typed(text: string): void {
    this.text = text;
    clearTimeout(this.timer);
    this.timer = setTimeout(this.keep, GATHERING);
  }

  /** Keeps what is not saved, or forgets what was kept once nothing is. */
  keep = (): void => {
    clearTimeout(this.timer);
    if (this.isForgotten) return;
    // An empty text that was never saved is nothing that could be lost.
    const isBlank = this.base === undefined && this.text === "";
    if (this.isUnsaved && !isBlank) this.isUnkept = !this.keeper.keep(this.key, this.text, this.base?.etag);
    else {
      this.keeper.forget(this.key);
      this.isUnkept = false;
    }
  };

  /** Looks whether the disk has another version. A clean text follows it, a dirty one says so. */
  async look(etag: string | undefined): Promise<void> {
    if (this.standing !== "ready" || this.isSaving || (etag !== undefined && etag === this.base?.etag && this.theirs === undefined)) return;
    if (etag === undefined && this.base === undefined) return;
    const asked = ++this.asked;
    let version: Version | "gone";
    try {
      version = await this.read();
    } catch {
      // A list that is out of date, or no connection: the next look tells.
      return;
    }
    if (asked !== this.asked || this.isSaving) return;
    if (version === "gone") this.theirs = this.base === undefined ? undefined : "gone";
    else if (version.etag === this.base?.etag) [this.base, this.theirs] = [version, undefined];
    else if (!this.isUnsaved || version.text === this.text) this.follow(version);
    // What stands there already stays: whoever compares both has a cursor in it.
    else if (this.theirs === undefined || this.theirs === "gone" || this.theirs.etag !== version.etag) this.theirs = version;
  }

  /** Takes a version of the disk in the place of what is here. */
  follow(version: Version): void {
    this.base = version;
    this.theirs = undefined;
    this.problem = undefined;
    this.put(version.text);
  }

  /** Goes back to what is on disk. */
  discard(): void {
    if (this.theirs !== undefined && this.theirs !== "gone") this.follow(this.theirs);
    else this.put(this.base?.text ?? "");
  }

  /** Puts another text here, as if it was typed. */
  put(text: string): void {
    this.text = text;
    this.show?.(text);
    // What is not shown begins anew with this text.
    if (!this.show) this.editor = undefined;
    this.keep();
  }

  /** Takes what is typed elsewhere than in its editor, which begins anew with it. */
  merged(text: string): void {
    this.editor = undefined;
    this.typed(text);
  }

  /** Shows a text that was kept, over what is here; it counts as typed over the version of then. */
  restore(kept: Kept): void {
    this.overtake(kept.text, kept.etag);
    this.drop(kept);
  }

  /** Puts a text here that was typed over some version. Where the disk has another one by now, both stand beside each other. */
  overtake(text: string, etag: string | undefined): void {
    if (this.base !== undefined && etag !== this.base.etag && text !== this.base.text) {
      this.theirs = this.base;
      // What that version was is not known; the next look tells where it is back.
      this.base = { ...this.base, etag: etag ?? "" };
    }
    this.put(text);
  }
  /** Forgets a text that was kept. */
  drop(kept: Kept): void {
    this.keeper.forget(kept.key);
    this.offers = this.offers.filter(({ key }) => key !== kept.key);
  }

  /**
   * Saves a text over the version that it was typed over; over another one only where a person has seen that one. Returns the
   * service's answer; none where it was refused, which `problem` and `theirs` tell.
   */
  async save(over: Version | "gone" | undefined = this.base, text = this.text): Promise<Schemas["FileChange"] | undefined> {
    if (this.isSaving) return undefined;
    this.isSaving = true;
    // What is being read is older than what is saved.
    this.asked += 1;
    this.problem = undefined;
    const version = over === "gone" ? undefined : over;
    const shape = version?.shape ?? this.base?.shape ?? PLAIN;
    try {
      const condition = version ? { "if-match": version.etag } : { "if-none-match": "*" };
      const change = await this.service.change<Schemas["FileChange"]>("PUT", this.service.fileOf(this.path), given(text, shape), { ...condition, "content-type": "text/plain" });
      this.base = { text, shape, etag: change.etag ?? "" };
      this.theirs = undefined;
      this.keep();
      return change;
    } catch (error) {
      const problem = problemOf(error);
      const isOvertaken = problem.status === 412 || problem.code === "already-exists";
      if (isOvertaken) this.theirs = await this.read().catch(() => undefined);
      if (!isOvertaken || this.theirs === undefined) this.problem = problem;
      return undefined;
    } finally {
      this.isSaving = false;
    }
  }

  /** Ends it; what is unsaved stays kept. */
  close(): void {
    if (this.isUnsaved) this.keep();
    clearTimeout(this.timer);
    // What is being read is for nobody.
    this.asked += 1;
  }
  /** Forgets what is unsaved: the file was deleted or renamed. */
  forget(): void {
    clearTimeout(this.timer);
    this.isForgotten = true;
    this.keeper.forget(this.key);
  }

  private async read(): Promise<Version | "gone"> {
    try {
      const answer = await this.service.open(this.service.fileOf(this.path), undefined, "*/*", AbortSignal.timeout(30_000));
      const bytes = new Uint8Array(await answer.arrayBuffer());
      return { ...whole(bytes), etag: answer.headers.get("etag") ?? "" };
    } catch (error) {
      if (problemOf(error).status === 404) return "gone";
      throw error;
    }
  }
}

function whole(bytes: Uint8Array): { text: string; shape: Shape } {
  try {
    return taken(bytes);
  } catch {
    throw { problem: made("bad-argument", "This file is no text in UTF-8.", "It is left as it is; change it on the machine.") };
  }
}
