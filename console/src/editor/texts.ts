// The texts that the language server has from this page: those that are looked at, and those that are not saved.

import { LSPPlugin, Workspace, type LSPClient, type WorkspaceFile } from "@codemirror/lsp-client";
import type { ChangeSet, Text } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";

class File implements WorkspaceFile {
  version = 0;
  constructor(
    readonly uri: string,
    readonly languageId: string,
    public doc: Text,
    public view: EditorView | null,
  ) {}
  getView(): EditorView | null {
    return this.view;
  }
}

/** The open texts. */
export class Texts extends Workspace {
  files: File[] = [];
  /** False while there is nobody to send anything to; what is there then is sent anew by `connected`. */
  isUp = false;

  /** `isUnsaved` says that a text counts in the place of the file also while nobody looks at it. */
  constructor(
    client: LSPClient,
    private readonly isUnsaved: (uri: string) => boolean,
  ) {
    super(client);
  }

  override getFile(uri: string): File | null {
    return this.files.find((file) => file.uri === uri) ?? null;
  }

  override syncFiles(): { file: File; prevDoc: Text; changes: ChangeSet }[] {
    if (!this.isUp) return [];
    return this.files.flatMap((file) => {
      const plugin = file.view && LSPPlugin.get(file.view);
      if (!plugin || plugin.unsyncedChanges.empty) return [];
      const update = { file, prevDoc: file.doc, changes: plugin.unsyncedChanges };
      file.doc = plugin.view.state.doc;
      file.version += 1;
      plugin.clear();
      return [update];
    });
  }

  override openFile(uri: string, languageId: string, view: EditorView): void {
    const known = this.getFile(uri);
    const file = known ?? new File(uri, languageId, view.state.doc, view);
    file.view = view;
    if (!known) {
      this.files.push(file);
      if (this.isUp) this.client.didOpen(file);
    } else this.replace(file, view.state.doc);
  }

  override closeFile(uri: string, view: EditorView): void {
    const file = this.getFile(uri);
    if (!file || file.view !== view) return;
    this.replace(file, view.state.doc);
    file.view = null;
    this.release(uri);
  }

  /** Lets the file on disk count again, where nobody looks at the text and nothing of it is unsaved. */
  release(uri: string): void {
    const file = this.getFile(uri);
    if (!file || file.view || this.isUnsaved(uri)) return;
    this.files = this.files.filter((one) => one !== file);
    if (this.isUp) this.client.didClose(uri);
  }

  override connected(): void {
    this.isUp = true;
    for (const file of this.files) {
      if (file.view) {
        file.doc = file.view.state.doc;
        LSPPlugin.get(file.view)?.clear();
      }
      file.version += 1;
      this.client.didOpen(file);
    }
  }
  override disconnected(): void {
    this.isUp = false;
  }

  private replace(file: File, doc: Text): void {
    if (file.doc.eq(doc)) return;
    file.doc = doc;
    file.version += 1;
    if (!this.isUp) return;
    const textDocument = { uri: file.uri, version: file.version };
    this.client.notification("textDocument/didChange", { textDocument, contentChanges: [{ text: doc.toString() }] });
  }
}
