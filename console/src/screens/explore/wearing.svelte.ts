// The author's colours, laid over the page while they are known.

import type { Service } from "../../service";
import { lay } from "./colours";
import type { Look } from "./look.svelte";

/** The element that wears them. */
const SELECTOR = ".explore";

/** Lays the theme of what is looked at over the page. Called while a component is made. */
export function wear(service: Service, look: Look): void {
  $effect(() => {
    const { theme, ownTheme } = look.declared ?? {};
    if (ownTheme) return lay(ownTheme, SELECTOR);
    if (!theme) return;
    let take: (() => void) | undefined;
    const gone = new AbortController();
    service.get<{ spec?: unknown }>(`${service.pathOf({ kind: "theme", name: theme })}?include=spec`, gone.signal).then(
      ({ spec }) => {
        if (gone.signal.aborted) return;
        take = lay(spec, SELECTOR);
        look.shared.paints += 1;
      },
      () => {},
    );
    return () => (gone.abort(), take?.());
  });
}
