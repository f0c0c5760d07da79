// The project's own language server, for the texts of this page: what is wrong, what may stand where, what a name means.

import { autocompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { hoverTooltips, LSPClient, LSPPlugin, serverCompletionSource } from "@codemirror/lsp-client";
import type { Extension } from "@codemirror/state";
import { ViewPlugin, type EditorView, type ViewUpdate } from "@codemirror/view";
import { visible } from "../parts/text";
import { addressOf, pathOf, rootOf } from "./addresses";
import { show, type Mark } from "./editor";
import { harmless } from "./markup";
import { wordEnd } from "./places";
import { Texts } from "./texts";
import { Way } from "./way";

/** The time for which keys are gathered before the server gets them, in milliseconds. */
const GATHERING = 40;
/** The waits before a connection is opened again, in milliseconds; the last one is repeated. */
const WAITS = [300, 1_000, 2_000, 4_000, 8_000];
/** The time after which an answer is not waited for any more, in milliseconds. */
const PATIENCE = 30_000;

/** A place in a file, from 1. */
export interface Place {
  path: string;
  line: number;
  column: number;
}

/** What is wrong at a place. */
export interface Finding extends Place {
  end?: { line: number; column: number };
  /** True if the last run has found it: it is of the file as it was then. */
  isOfRun?: boolean;
  severity: "error" | "warning" | "info" | "hint";
  code: string;
  message: string;
}

interface Range {
  start: { line: number; character: number };
  end: { line: number; character: number };
}
interface Told {
  range: Range;
  severity?: number;
  code?: string | number;
  message: string;
}
const SEVERITIES = ["error", "warning", "info", "hint"] as const;

export class Language {
  /** `judging` while there is a server, which has the texts. */
  standing = $state<"opening" | "judging" | "cut">("opening");
  /** What is wrong by path, in all files of the project. */
  found = $state.raw<ReadonlyMap<string, Finding[]>>(new Map());
  /** What the last runs have found, by path. */
  private runs: ReadonlyMap<string, Finding[]> = new Map();

  private readonly root: string;
  private readonly client: LSPClient;
  private socket: WebSocket | undefined;
  private way: Way | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private isClosed = false;

  constructor(
    private readonly address: string,
    instance: string,
    private readonly isUnsaved: (path: string) => boolean,
  ) {
    this.root = rootOf(instance);
    this.client = new LSPClient({
      rootUri: this.root,
      timeout: PATIENCE,
      sanitizeHTML: harmless,
      workspace: (client) => new Texts(client, (uri) => isUnsaved(pathOf(this.root, uri) ?? "")),
      notificationHandlers: {
        "textDocument/publishDiagnostics": (_, told) => (this.take(told), true),
        "window/logMessage": () => true,
        "window/showMessage": () => true,
      },
      unhandledNotification: () => {},
      extensions: [{ clientCapabilities: { textDocument: { publishDiagnostics: { versionSupport: true } } } }],
    });
    this.open();
  }

  /** What an editor of a file needs. */
  editorOf(path: string, id: string): Extension {
    return [
      this.client.plugin(addressOf(this.root, path), id),
      autocompletion({ override: [(context) => this.complete(context)], icons: false }),
      hoverTooltips({ hoverTime: 300 }),
      this.sending,
    ];
  }

  /** Shows what is known to be wrong in a file, where an editor shows the file. What a run has found is shown where it was run. */
  draw(path: string): void {
    const view = this.texts.files.find((one) => pathOf(this.root, one.uri) === path)?.getView();
    const plugin = view && LSPPlugin.get(view);
    if (!view || !plugin) return;
    const unsent = plugin.unsyncedChanges;
    const told = (this.found.get(path) ?? []).map((one) => markOf(plugin.syncedDoc, one));
    const marks = told.map((mark) => ({ ...mark, from: unsent.mapPos(mark.from), to: unsent.mapPos(mark.to) }));
    const ran = this.isUnsaved(path) ? [] : (this.runs.get(path) ?? []).map((one) => markOf(view.state.doc, one));
    show(view, [...marks, ...ran]);
  }

  /** Takes what the last runs have found. */
  ran(runs: ReadonlyMap<string, Finding[]>): void {
    const changed = new Set([...this.runs.keys(), ...runs.keys()]);
    this.runs = runs;
    changed.forEach((path) => this.draw(path));
  }

  /** Returns the places that the name at the cursor leads to: where it is declared, or where it is used. */
  async places(view: EditorView, what: "definition" | "references"): Promise<Place[]> {
    const found = await this.ask<{ uri: string; range: Range } | { uri: string; range: Range }[]>(view, what, { context: { includeDeclaration: true } });
    return (Array.isArray(found) ? found : found ? [found] : []).flatMap(({ uri, range }) => {
      const path = pathOf(this.root, uri);
      return path === undefined ? [] : [{ path, line: range.start.line + 1, column: range.start.character + 1 }];
    });
  }

  /** Returns what is known of the name at the cursor, in words. */
  async about(view: EditorView): Promise<string | undefined> {
    const found = await this.ask<{ contents: string | { value: string } }>(view, "hover", {});
    return found ? (typeof found.contents === "string" ? found.contents : found.contents.value) : undefined;
  }

  /** Tells the server that a file counts again as it is on disk, where nothing of it is unsaved any more. */
  release(path: string): void {
    this.texts.release(addressOf(this.root, path));
  }

  close = (): void => {
    this.isClosed = true;
    clearTimeout(this.timer);
    // Editors that end after it have nobody to tell.
    this.way?.end();
    this.socket?.close();
  };

  private get texts(): Texts {
    return this.client.workspace as Texts;
  }

  private async ask<T>(view: EditorView, what: string, more: object): Promise<T | null> {
    const plugin = LSPPlugin.get(view);
    if (!plugin || this.standing !== "judging") return null;
    this.client.sync();
    const position = plugin.toPosition(view.state.selection.main.head);
    return this.client.request<object, T | null>(`textDocument/${what}`, { ...more, textDocument: { uri: plugin.uri }, position }).catch(() => null);
  }

  private async complete(context: CompletionContext): Promise<CompletionResult | null> {
    if (this.standing !== "judging") return null;
    try {
      const found = await serverCompletionSource(context);
      if (!found) return null;
      const options = found.options.map((one) => ({ ...one, displayLabel: visible(one.displayLabel ?? one.label), ...(one.detail !== undefined && { detail: visible(one.detail) }) }));
      return { ...found, options };
    } catch {
      return null;
    }
  }

  /** Sends what was typed as soon as nothing is typed for a moment. */
  private readonly sending = ViewPlugin.define(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    return {
      update: ({ docChanged }: ViewUpdate) => {
        if (!docChanged) return;
        clearTimeout(timer);
        timer = setTimeout(() => this.client.sync(), GATHERING);
      },
      destroy: () => clearTimeout(timer),
    };
  });

  private take({ uri, version, diagnostics }: { uri: string; version?: number | null; diagnostics: Told[] }): void {
    const path = pathOf(this.root, uri);
    if (path === undefined || !Array.isArray(diagnostics)) return;
    const file = this.texts.files.find((one) => pathOf(this.root, one.uri) === path);
    // What is said of another version of the text is out of date, or not asked for yet.
    if (file && version !== null && version !== undefined && version !== file.version) return;
    const findings = diagnostics.map(({ range: { start, end }, severity = 1, code, message }): Finding => ({
      path,
      line: start.line + 1,
      column: start.character + 1,
      end: { line: end.line + 1, column: end.character + 1 },
      severity: SEVERITIES[severity - 1] ?? "error",
      code: String(code ?? ""),
      message: String(message),
    }));
    if (findings.length > 0) this.found = new Map(this.found).set(path, findings);
    else if (this.found.has(path)) this.found = new Map([...this.found].filter(([one]) => one !== path));
    this.draw(path);
  }

  private open(): void {
    const socket = new WebSocket(this.address);
    const way = new Way(socket);
    [this.socket, this.way] = [socket, way];
    socket.onopen = () => {
      this.client.connect(way);
      void this.client.initializing.then(() => {
        if (socket.readyState !== WebSocket.OPEN) return;
        this.failures = 0;
        this.standing = "judging";
      });
    };
    socket.onmessage = ({ data }) => way.hear(String(data));
    socket.onclose = () => {
      this.standing = "cut";
      way.end();
      // What the end has answered is told first.
      setTimeout(() => {
        this.client.disconnect();
        if (this.isClosed) return;
        const wait = WAITS[Math.min(this.failures++, WAITS.length - 1)]!;
        this.timer = setTimeout(() => this.open(), wait * (0.75 + Math.random() / 2));
      });
    };
  }
}

/** Returns the mark of a finding, within the text; one without an end is of a word. */
function markOf(doc: EditorView["state"]["doc"], finding: Finding): Mark {
  const at = ({ line, column }: { line: number; column: number }) => {
    const { from, to } = doc.line(Math.min(Math.max(line, 1), doc.lines));
    return Math.min(from + Math.max(column - 1, 0), to);
  };
  const from = at(finding);
  const rest = doc.lineAt(from);
  const to = finding.end ? at(finding.end) : wordEnd(rest.text, from - rest.from) + rest.from;
  const message = finding.code ? `${finding.code}: ${finding.message}` : finding.message;
  return { from, to: Math.max(from, to), message, severity: finding.severity };
}
