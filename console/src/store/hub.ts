// Lines that several pages share: one for each project that anybody looks at.

import { Line, type Known, type News } from "./line";

/** What a page says to the hub. */
export type Wish = { follow: string; known: Known | undefined } | { leave: true };

/** A page that looks. */
export interface Looker {
  tell(news: News): void;
}

interface Shared {
  line: Line;
  lookers: Set<Looker>;
}

const lines = new Map<string, Shared>();

/** Lets a page follow a project, from an address of its stream and from what it knows already. Returns what ends that. */
export function follow(address: string, looker: Looker, known?: Known): () => void {
  let shared = lines.get(address);
  if (shared) looker.tell(shared.line.whole());
  else {
    const lookers = new Set<Looker>();
    shared = { lookers, line: new Line(address, (news) => lookers.forEach((one) => one.tell(news)), { known }) };
    lines.set(address, shared);
  }
  const { line, lookers } = shared;
  lookers.add(looker);
  return () => {
    lookers.delete(looker);
    if (lookers.size > 0 || lines.get(address)?.line !== line) return;
    line.close();
    lines.delete(address);
  };
}
