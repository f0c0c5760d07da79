// The address is the view: `BASE/ui/INSTANCE`, and `BASE/ui/INSTANCE/KIND/NAME`, with the rest of the view in the query.

/** The path below which the service stands, without a slash at its end. */
const base = new URL(document.baseURI).pathname.replace(/\/$/, "");

let at = $state.raw(new URL(location.href));
addEventListener("popstate", () => (at = new URL(location.href)));

/** Goes to a page. */
export function go(href: string): void {
  history.pushState({}, "", href);
  at = new URL(location.href);
}

/** Puts another address in the place of the present one: a view that is adjusted needs no way back. */
export function adjust(href: string): void {
  history.replaceState({}, "", href);
  at = new URL(location.href);
}

// Links within the console load no page; all others, and those for another tab, are the browser's.
document.addEventListener("click", (event) => {
  const link = (event.target as Element).closest?.("a");
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || event.defaultPrevented || !isPlain || link.target || link.hasAttribute("download")) return;
  if (link.origin !== location.origin || !isOurs(link.pathname)) return;
  if (link.pathname === at.pathname && link.search === at.search && link.hash) return;
  event.preventDefault();
  go(link.href);
});

function isOurs(path: string): boolean {
  return path === `${base}/` || path === `${base}/ui` || path.startsWith(`${base}/ui/`);
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Where the page is. */
export const place = {
  base,
  get url(): URL {
    return at;
  },
  /** The names in the address: instance, kind, name. */
  get parts(): string[] {
    const path = at.pathname.slice(base.length).split("/").filter(Boolean);
    return path.slice(1).map(decoded);
  },
  get instance(): string {
    return this.parts[0] ?? "";
  },
  /** The address of a page. */
  href(parts: string[]): string {
    return `${base}/ui/${parts.map(encodeURIComponent).join("/")}`;
  },
  /** The present address with another word in its query; without it where there is none. */
  with(name: string, value: string | undefined): string {
    const url = new URL(at);
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
    return url.pathname + url.search;
  },
};
