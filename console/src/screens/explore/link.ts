// Links that data hold.

const SCHEMES = ["http:", "https:", "mailto:"];

/** Returns where a link leads, and how that place is called; none for what is no link of the web or of mail. */
export function targetOf(uri: unknown): { href: string; place: string } | undefined {
  if (typeof uri !== "string" || uri.length > 2_000 || !URL.canParse(uri)) return undefined;
  const url = new URL(uri);
  if (!SCHEMES.includes(url.protocol) || url.username || url.password) return undefined;
  return { href: url.href, place: url.protocol === "mailto:" ? url.pathname : url.host };
}
