// The layout, beside the page.

import { layout, type Edges } from "./layout";

/** A graph with the number under which its layout is awaited. */
export interface Work {
  number: number;
  edges: Edges;
}

self.onmessage = ({ data: { number, edges } }: MessageEvent<Work>) => {
  self.postMessage({ number, layout: layout(edges) });
};
