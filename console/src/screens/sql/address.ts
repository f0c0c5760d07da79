// The question in the address: behind its mark, so that no server and no log of one ever sees it.

/** The longest text that a link carries, in characters: more is cut by what carries links. */
const LONGEST_LINK = 32_000;
/** The longest text that is taken from a link. */
const LONGEST = 200_000;

/** Returns the mark of an address with a question; none for one that is too long for a link. */
export function markOf(question: string): string | undefined {
  return question.trim() === "" ? "" : question.length > LONGEST_LINK ? undefined : `#q=${encodeURIComponent(question)}`;
}

/** What an address asks. */
export type Asked = { question: string } | { problem: string } | undefined;

/** Reads the question of an address; it is filled in and never asked by itself. */
export function asked(mark: string): Asked {
  const found = /^#q=(.*)$/s.exec(mark);
  if (!found) return undefined;
  if (found[1]!.length > 4 * LONGEST) return { problem: `The question in this link is longer than ${LONGEST.toLocaleString("en")} characters and was left out.` };
  try {
    const question = decodeURIComponent(found[1]!);
    return question.length > LONGEST ? { problem: `The question in this link is longer than ${LONGEST.toLocaleString("en")} characters and was left out.` } : { question };
  } catch {
    return { problem: "The question in this link can't be read: a part of the link is missing." };
  }
}
