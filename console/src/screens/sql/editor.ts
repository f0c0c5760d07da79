// The editor of a question, in a shadow root: there its styles are constructed sheets, which the policy of the page lets through.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { SQLDialect } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState, Prec } from "@codemirror/state";
import { drawSelection, EditorView, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { KEYWORDS } from "../../parts/highlight";
import { visible } from "../../parts/text";
import { completionsAt, type Source } from "./completion";

/** A place in the text where something is wrong. */
export interface Mark {
  from: number;
  to: number;
  message: string;
}

interface Options {
  text: string;
  label: string;
  outputs: Source;
  run: () => void;
  changed: (text: string) => void;
}

/** SQL with the words that the console colours elsewhere too. */
const dialect = SQLDialect.define({ keywords: [...KEYWORDS].join(" "), builtin: "", types: "", doubleDollarQuotedStrings: true });

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-text)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--code-comment)" },
]);

const look = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--bg)", fontSize: "0.8125rem" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5", overflow: "auto" },
  ".cm-content": { caretColor: "var(--text)", padding: "0.5rem 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--muted)", borderRight: "1px solid var(--line)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { backgroundColor: "color-mix(in oklab, var(--accent) 26%, transparent)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--hover)", outline: "1px solid var(--edge)" },
  ".cm-placeholder": { color: "var(--muted)" },
  ".cm-tooltip": { backgroundColor: "var(--bg)", border: "1px solid var(--edge)", borderRadius: "0.25rem", color: "var(--text)", maxWidth: "40rem" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "0.8125rem" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--hover)", color: "var(--text)" },
  ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--failed)" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--failed)", textUnderlineOffset: "0.2em", backgroundColor: "var(--failed-tint)" },
});

/** Puts an editor into an element. */
export function edit(into: HTMLElement, { text, label, outputs, run, changed }: Options): EditorView {
  const root = into.shadowRoot ?? into.attachShadow({ mode: "open" });
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => (run(), true) }])),
        // Tab leads on, as everywhere on the page.
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
        history(),
        drawSelection(),
        lineNumbers(),
        bracketMatching(),
        closeBrackets(),
        EditorView.lineWrapping,
        placeholder("SELECT …"),
        // The language alone: its own completion knows words that the engine doesn't.
        dialect.language,
        syntaxHighlighting(colours),
        autocompletion({ override: [(context) => complete(context, outputs)], icons: false }),
        look,
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
        EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
      ],
    }),
  });
  return view;
}

async function complete(context: CompletionContext, outputs: Source): Promise<CompletionResult | null> {
  const left = new AbortController();
  context.addEventListener("abort", () => left.abort());
  const found = await completionsAt(context.state.doc.toString(), context.pos, context.explicit, outputs, left.signal);
  if (!found) return null;
  const options = found.entries.map(({ label, detail, insert, sort }): Completion => ({ label: visible(label), detail: visible(detail), apply: insert, type: sort, boost: sort === "column" ? 1 : 0 }));
  return { from: found.from, options, validFor: /^"?[\p{L}\p{N}_]*$/u };
}

/** Shows what is wrong; nothing where there are no marks. */
export function show(view: EditorView, marks: Mark[]): void {
  const end = view.state.doc.length;
  const diagnostics = marks.map(({ from, to, message }) => ({ from: Math.min(from, end), to: Math.min(to, end), severity: "error" as const, message: visible(message.slice(0, 2_000)) }));
  view.dispatch(setDiagnostics(view.state, diagnostics));
}
