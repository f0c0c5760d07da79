// An author's text as elements that hold nothing but words, lists, tables, links that say where they lead, and pictures that are in the text.

import DOMPurify from "dompurify";
import { Marked } from "marked";
import { harmless } from "../../editor/markup";
import { cut, MOST, visible } from "../../parts/text";
import { targetOf } from "../explore/link";
import { pictureOf } from "./pictures";

const TAGS = "a b blockquote br code del div em h1 h2 h3 h4 h5 h6 hr i img li ol p pre s span strong sub sup table tbody td th thead tr ul".split(" ");
const RULES = { ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ["href", "src", "alt", "title", "start", "align"], ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, RETURN_DOM_FRAGMENT: true } as const;

const marked = new Marked({
  gfm: true,
  // Of elements that stand in the text only plain ones stay: a parser reports what others hold, even where nothing of it runs.
  renderer: { html: ({ text }) => harmless(text) },
  // The page has its own first heading.
  walkTokens: (token) => {
    if (token.type === "heading") token.depth = Math.min(token.depth + 1, 6);
  },
});

/** The most pairs of signs that are tried: each sign of emphasis, of code, of links and of pictures with each other one of its paragraph. */
const MOST_PAIRS = 250_000;

/** Returns true if a text has more signs than are paired in a moment. */
export function isTangled(text: string): boolean {
  const signs = text.split(/\n\s*\n/).map((part) => part.match(/[*_~`![\]<]/g)?.length ?? 0);
  return signs.reduce((pairs, count) => pairs + count * count, 0) > MOST_PAIRS;
}

/** Returns a text as it is written, in its lines. */
function asWritten(text: string): DocumentFragment {
  const [made, lines] = [document.createDocumentFragment(), document.createElement("pre")];
  lines.textContent = text;
  made.append(lines);
  return made;
}

/** Returns a text in markdown as elements. */
export function proseOf(said: string): DocumentFragment {
  const text = visible(cut(said, MOST));
  if (isTangled(text)) return asWritten(text);
  const html = marked.parse(text, { async: false });
  const made = DOMPurify.sanitize(html, { ...RULES, ALLOWED_TAGS: [...TAGS], ALLOWED_ATTR: [...RULES.ALLOWED_ATTR] });
  // Signs that steer a page may have come as entities.
  const walker = document.createTreeWalker(made, NodeFilter.SHOW_ALL);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node instanceof Text) node.data = visible(node.data);
    else if (node instanceof Element) for (const { name, value } of [...node.attributes]) if (name === "alt" || name === "title") node.setAttribute(name, visible(value));
  }
  made.querySelectorAll("img").forEach(hang);
  made.querySelectorAll("a").forEach(lead);
  return made;
}

/** Leaves a picture that is in the text itself; any other is a link to it. */
function hang(image: HTMLImageElement): void {
  const address = image.getAttribute("src") ?? "";
  if (pictureOf(address)) return;
  const link = document.createElement("a");
  link.setAttribute("href", address);
  link.textContent = image.alt || "picture";
  image.replaceWith(link);
}

/** Makes a link one that says where it leads; what leads nowhere on the web is its words. */
function lead(link: HTMLAnchorElement): void {
  const address = link.getAttribute("href") ?? "";
  const target = targetOf(address);
  if (!target) {
    link.replaceWith(...link.childNodes, address && !address.startsWith("#") && !/^\w*script:/i.test(address.replace(/\s/g, "")) ? ` (${visible(cut(address, 200))})` : "");
    return;
  }
  for (const { name } of [...link.attributes]) link.removeAttribute(name);
  Object.assign(link, { href: target.href, target: "_blank", rel: "noopener noreferrer nofollow", title: visible(target.href) });
  const place = document.createElement("bdi");
  place.textContent = visible(target.place);
  link.append(" ↗ ", place);
}
