// The graph of resources with the places of its nodes. Places are asked for before anything of the page is drawn: the worker computes
// them while the page draws all else.

import { takeLayouts } from "../begun";
import type { ResourceDocument } from "../store/listing";
import type { Layout } from "./layout";
import type { Work } from "./layout.worker";
import { sceneOf, type Scene } from "./scene";

/** What is drawn of some resources; made while a component is. */
export class Drawing {
  /** Folders that are open, where folders are folded. */
  open = $state.raw<ReadonlySet<string>>(new Set());
  /** What is drawn; none before the first places are there. The picture waits for places, and never shows nodes at those of others. */
  drawn = $state.raw<{ scene: Scene; layout: Layout }>();
  private placed = $state.raw<{ layout: Layout; signature: string }>();

  /** `resources` are none as long as they are not known. */
  constructor(resources: () => ResourceDocument[] | undefined) {
    const worker = takeLayouts();
    let before: Scene | undefined;
    const scene = $derived.by(() => {
      const all = resources();
      return all && (before = sceneOf(all, this.open, before));
    });
    let [awaited, asked] = [0, ""];
    $effect.pre(() => {
      if (!scene || scene.signature === asked) return;
      asked = scene.signature;
      awaited += 1;
      worker.postMessage({ number: awaited, edges: scene.edges } satisfies Work);
    });
    worker.onmessage = ({ data }: MessageEvent<{ number: number; layout: Layout }>) => {
      if (data.number === awaited) this.placed = { layout: data.layout, signature: asked };
    };
    $effect(() => {
      if (scene && this.placed?.signature === scene.signature) this.drawn = { scene, layout: this.placed.layout };
    });
    $effect(() => () => worker.terminate());
  }
}
