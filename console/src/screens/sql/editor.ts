// The editor of a question: it asks, and completes outputs and their columns.

import { autocompletion, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap, placeholder } from "@codemirror/view";
import { edit as editorIn, extensions } from "../../editor/editor";
import { sql } from "../../editor/languages";
import { visible } from "../../parts/text";
import { completionsAt, type Source } from "./completion";

interface Options {
  text: string;
  label: string;
  outputs: Source;
  run: () => void;
  changed: (text: string) => void;
}

/** Puts an editor into an element. */
export function edit(into: HTMLElement, { text, label, outputs, run, changed }: Options): EditorView {
  const special = [
    Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => (run(), true) }])),
    EditorView.lineWrapping,
    placeholder("SELECT …"),
    sql,
    autocompletion({ override: [(context) => complete(context, outputs)], icons: false }),
    EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
  ];
  return editorIn(into, EditorState.create({ doc: text, extensions: extensions(label, special) }));
}

async function complete(context: CompletionContext, outputs: Source): Promise<CompletionResult | null> {
  const left = new AbortController();
  context.addEventListener("abort", () => left.abort());
  const found = await completionsAt(context.state.doc.toString(), context.pos, context.explicit, outputs, left.signal);
  if (!found) return null;
  const options = found.entries.map(({ label, detail, insert, sort }): Completion => ({ label: visible(label), detail: visible(detail), apply: insert, type: sort, boost: sort === "column" ? 1 : 0 }));
  return { from: found.from, options, validFor: /^"?[\p{L}\p{N}_]*$/u };
}
