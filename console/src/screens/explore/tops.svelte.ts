// The values of a dimension that lines are drawn of: those that a filter names, and else the first by a measure.

import type { Field } from "./declared";
import { plain } from "./format";
import type { Look } from "./look.svelte";
import { leaderboard, type Order } from "./questions";
import { tell, Tile } from "./tile.svelte";

/** The most lines of values. */
export const LINES = 7;

/** Finds values once their lines are in sight. Called while a component is made. */
export function topsOf(look: Look, isSeen: () => boolean, by: () => Field | undefined, order: () => Order | undefined): { readonly values: (string | null)[] | undefined } {
  const tile = new Tile();
  const chosen = $derived.by(() => {
    const one = look.frame.filters.find((one) => one.sort === "values" && !one.isNot && one.field === by()?.name);
    return one?.sort === "values" && one.values.length <= LINES ? one.values : undefined;
  });
  $effect(() => {
    const [field, first] = [by(), order()];
    if (!look.asking || !isSeen() || !field || !first || chosen) tile.stop();
    else tile.ask(look.asking, leaderboard(look.frame, field, { ...first, rank: "value" }, false, LINES), look.round);
  });
  tell(tile, look);
  $effect(() => tile.stop);
  const isOfBy = $derived(tile.question?.query.dimensions?.[0] === by()?.name);
  const values = $derived(chosen ?? (isOfBy ? tile.told?.answer.rows.map(([value]) => (value === null ? null : plain(value))) : undefined));
  return {
    get values() {
      return by() && values;
    },
  };
}
