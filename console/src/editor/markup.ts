// What the language server says, as markup that holds nothing but words: U9.

import { visible } from "../parts/text";

/** Elements that may stand in it, none of them with an attribute. */
const SAFE = /(<\/?(?:p|pre|code|strong|em|ul|ol|li|br|hr|h[1-6])>)/;

/** Leaves of markup only plain elements without attributes; all else is left out, or is words. */
export function harmless(html: string): string {
  const plain = visible(html).replace(/<code class="[\w-]*">/g, "<code>").replace(/<(br|hr) ?\/>/g, "<$1>");
  const pieces = plain.split(SAFE).map((piece, index) => (index % 2 === 1 ? piece : words(piece)));
  return pieces.join("");
}

/** Makes anything words: elements are left out, and no name of a sign stands for another one than the usual four. */
function words(text: string): string {
  return text
    .replace(/<\/?[a-z][^<>]*>/gi, "")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replace(/&(?!(?:amp|lt|gt|quot|#39);)/g, "&amp;");
}
