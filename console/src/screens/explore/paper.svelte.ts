// What is looked at on paper: all of it, in sight or not, in light colours.

import { theme } from "../../frame/theme.svelte";
import type { Look } from "./look.svelte";

/** Frames of the screen in which nothing is asked or drawn, before all is there. */
const QUIET = 6;

/** Draws all of it while it is printed. Made while a component is. */
export class Paper {
  constructor(private readonly look: Look) {
    // Who prints by the browser's own menu gets what has come by then.
    $effect(() => {
      const media = matchMedia("print");
      const change = () => this.lay(media.matches);
      media.addEventListener("change", change);
      return () => {
        media.removeEventListener("change", change);
        this.lay(false);
      };
    });
  }

  private lay(isOn: boolean): void {
    this.look.shared.isWhole = isOn;
    theme.paper(isOn);
  }

  /** Prints once all is drawn. */
  print = async (): Promise<void> => {
    this.lay(true);
    const isBusy = () => this.look.shared.pending > 0 || document.querySelector(".explore [aria-busy='true']") !== null;
    for (let quiet = 0; quiet < QUIET && this.look.shared.isWhole; quiet = isBusy() ? 0 : quiet + 1) await new Promise(requestAnimationFrame);
    if (this.look.shared.isWhole) window.print();
    this.lay(false);
  };
}
