// Texts of projects, made fit to be shown: whatever they say, they are words and nothing else.

/** Characters that turn the direction of what follows, or hide in it, each with its number shown in its place. */
const HIDDEN = /[\u061C\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF\u{E0000}-\u{E007F}]/gu;

/** Control characters but for line ends and tabs. */
const CONTROLS = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g;

/** Shows characters that would steer a page or a terminal as what they are. */
export function visible(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replace(CONTROLS, (mark) => {
      const code = mark.charCodeAt(0);
      return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "\u2421" : number(code);
    })
    .replace(HIDDEN, (mark) => number(mark.codePointAt(0) ?? 0));
}

function number(code: number): string {
  return `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
}

/** The characters of a text that are shown unless a person asks for more. */
export const SHOWN = 2_000;

/** The most characters that are ever put on the page of one text: more than that no one reads, and a page must not stall. */
export const MOST = 100_000;

/** Cuts a text, never in the middle of a character. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 1 : most);
}

/** Returns true if a name can be said in the language of selections: others have marks of it. */
export function isSelectable(key: string): boolean {
  return /^[\w.\-/]+$/.test(key);
}

/** A piece of a hint: words, a name in code, or an operation that can be carried out. */
export type Piece =
  | { sort: "words"; text: string }
  | { sort: "code"; text: string }
  | { sort: "operation"; name: string; arguments: string[] };

/** Splits a hint into words, code, and operations, which are written as `watershed NAME ARGUMENTS` between backticks. */
export function pieces(hint: string): Piece[] {
  const found: Piece[] = [];
  const push = (text: string) => text !== "" && found.push({ sort: "words", text });
  const parts = hint.split("`");
  parts.forEach((text, index) => {
    const isOpen = index % 2 === 1 && index === parts.length - 1;
    if (index % 2 === 0) push(text);
    else if (isOpen) push("`" + text);
    else if (text.startsWith("watershed ")) {
      const [name = "", ...rest] = text.split(" ").slice(1);
      found.push({ sort: "operation", name, arguments: rest });
    } else if (text !== "") found.push({ sort: "code", text });
  });
  return found;
}

/** Returns what is nearest to a name, the nearest first; nothing that has little in common with it. */
export function nearest<T>(name: string, among: Iterable<T>, nameOf: (one: T) => string, most = 5): T[] {
  const wanted = name.toLowerCase();
  const bound = Math.max(2, Math.ceil(wanted.length / 3));
  const judged: { one: T; far: number }[] = [];
  for (const one of among) {
    const other = nameOf(one).toLowerCase();
    const isPart = wanted.length > 2 && (other.includes(wanted) || wanted.includes(other));
    const far = isPart ? 1 : distance(wanted, other, bound);
    if (far <= bound) judged.push({ one, far });
  }
  return judged
    .sort((a, b) => a.far - b.far || (nameOf(a.one) < nameOf(b.one) ? -1 : 1))
    .slice(0, most)
    .map(({ one }) => one);
}

/** Levenshtein's distance; more than `bound` if it is beyond that. */
function distance(a: string, b: string, bound: number): number {
  if (Math.abs(a.length - b.length) > bound) return bound + 1;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** Judges how well a name fits typed letters, which must stand in it in that order; none if they don't. */
export function fits(typed: string, name: string): number | undefined {
  const letters = typed.toLowerCase().replaceAll(" ", "");
  const lower = name.toLowerCase();
  const whole = lower.indexOf(letters);
  if (whole >= 0) return 1000 - whole - lower.length / 100 + (whole === 0 ? 500 : 0);
  let [from, score] = [0, 0];
  for (const letter of letters) {
    const at = lower.indexOf(letter, from);
    if (at < 0) return undefined;
    const begins = at === 0 || /[^a-z0-9]/.test(lower[at - 1] ?? "");
    score += begins ? 8 : at === from ? 4 : 0;
    score -= Math.min(at - from, 6);
    from = at + 1;
  }
  return score - lower.length / 100;
}
