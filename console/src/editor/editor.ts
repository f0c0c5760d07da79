// An editor, in a shadow root: there its styles are constructed sheets, which the policy of the page lets through.

import { closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching } from "@codemirror/language";
import { lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, keymap, lineNumbers } from "@codemirror/view";
import { visible } from "../parts/text";
import { look } from "./look";

/** A place in the text about which something is to be said. */
export interface Mark {
  from: number;
  to: number;
  message: string;
  severity?: "error" | "warning" | "info" | "hint";
}

/** The longest message that is shown at a place. */
const LONGEST = 2_000;

/** What all editors have; what is special about one comes first. */
export function extensions(label: string, special: Extension): Extension[] {
  return [
    special,
    // Tab leads on, as everywhere on the page.
    keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
    history(),
    drawSelection(),
    lineNumbers(),
    bracketMatching(),
    closeBrackets(),
    look,
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
  ];
}

/** The root in which the editors of an element stand. */
export const rootOf = (into: HTMLElement): ShadowRoot => into.shadowRoot ?? into.attachShadow({ mode: "open" });

/** Puts an editor with a state into an element. */
export function edit(into: HTMLElement, state: EditorState): EditorView {
  const root = rootOf(into);
  return new EditorView({ root, parent: root, state });
}

/** Shows marks in the place of those that are there. */
export function show(view: EditorView, marks: Mark[]): void {
  const end = view.state.doc.length;
  const diagnostics = marks.map(({ from, to, message, severity = "error" }) => ({ from: Math.min(from, end), to: Math.min(to, end), severity, message: visible(message.slice(0, LONGEST)) }));
  view.dispatch(setDiagnostics(view.state, diagnostics));
}
