// Whether the service has other pages than those that are shown.

import { place } from "../router";

const own = document.querySelector<HTMLScriptElement>("script[type=module][src]")?.src;

/** Returns true if the service was replaced by one of another version meanwhile: its page has another script. */
export async function isOtherVersion(): Promise<boolean> {
  try {
    const answer = await fetch(`${place.base}/`, { cache: "no-store", headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const script = page.querySelector("script[type=module][src]")?.getAttribute("src");
    return answer.ok && !!script && !!own && new URL(script, document.baseURI).href !== own;
  } catch {
    return false;
  }
}
