// Questions of the parts of a board: asked while they are in sight, and told to all that is seen of their view.

import { over, type Query, type Question } from "../explore/questions";
import { tell, type Tile } from "../explore/tile.svelte";
import type { Asked } from "./document";
import type { Sight } from "./sight.svelte";
import { cutTo } from "./times";

/** The query of a component without the name of its view, which stands in the path. */
export function queryOf({ metrics_view: _, ...query }: Asked): Query {
  return query;
}

/** Lays the time and the filters of a board over what a component asks. */
export function questionOf({ frame, time, own, smallest }: Sight, asked: Asked, limit: number, compares = false): Question {
  return over(frame, queryOf(cutTo(asked, time, own?.grain, smallest)), limit, { compares });
}

/** Keeps a tile at its question. Called while a component is made. */
export function ask(tile: Tile, sight: Sight, isSeen: () => boolean, question: () => Question | undefined): void {
  $effect(() => {
    const { asking, round } = sight;
    const asked = question();
    if (!asking || !asked || !isSeen()) tile.stop();
    else tile.ask(asking, asked, round);
  });
  tell(tile, sight);
  $effect(() => tile.stop);
}
