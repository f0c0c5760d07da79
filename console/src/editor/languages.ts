// The languages of files. They colour and fold; what may stand where is known by the service alone.

import { SQLDialect } from "@codemirror/lang-sql";
import { yamlLanguage } from "@codemirror/lang-yaml";
import type { Language } from "@codemirror/language";
import { KEYWORDS } from "../parts/highlight";

/** SQL with the words that the console colours elsewhere too. Without a completion, which would know words that the engine doesn't. */
export const sql: Language = SQLDialect.define({ keywords: [...KEYWORDS].join(" "), builtin: "", types: "", doubleDollarQuotedStrings: true }).language;

/** Returns the language of a file and the name by which the language server knows it; none for prose. */
export function languageOf(path: string): { language: Language; id: string } | undefined {
  if (/\.sql$/i.test(path)) return { language: sql, id: "sql" };
  return /\.ya?ml$/i.test(path) ? { language: yamlLanguage, id: "yaml" } : undefined;
}
