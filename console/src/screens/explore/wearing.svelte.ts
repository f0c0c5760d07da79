// The author's colours, laid over the page while they are known.

import { untrack } from "svelte";
import type { Service } from "../../service";
import { lay } from "./colours";
import type { Look } from "./look.svelte";

/** The element that wears them. */
const SELECTOR = ".explore";

/** Lays the theme of what is looked at over the page. Called while a component is made. */
export function wear(service: Service, look: Look): void {
  // The same theme stays where it is when the page is read anew.
  const theme = $derived(look.declared?.theme);
  const own = $derived(look.declared?.ownTheme ? JSON.stringify(look.declared.ownTheme) : "");
  const wearing = (spec: unknown) => {
    const take = lay(spec, SELECTOR);
    untrack(() => (look.shared.paints += 1));
    return take;
  };
  $effect(() => {
    if (own) return wearing(JSON.parse(own));
    if (!theme) return;
    let take: (() => void) | undefined;
    const gone = new AbortController();
    service.get<{ spec?: unknown }>(`${service.pathOf({ kind: "theme", name: theme })}?include=spec`, gone.signal).then(
      ({ spec }) => {
        if (!gone.signal.aborted) take = wearing(spec);
      },
      () => {},
    );
    return () => (gone.abort(), take?.());
  });
}
