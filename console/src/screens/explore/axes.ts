// Axes of a pivot, as words of the address have them: `origin`, `scheduled_at:month`.

import { GRAINS, type Grain } from "./format/time";
import { axisGrain, axisName, type Axis } from "./questions";

/** Reads axes, those of fields that are known; the time without a grain has that of the page. */
export function axesOf(words: string[], known: string[], time: string | undefined, grain: Grain): Axis[] {
  const found: Axis[] = [];
  for (const word of words) {
    const at = word.lastIndexOf(":");
    const cut = GRAINS.find((one) => one === word.slice(at + 1));
    const name = cut && at > 0 ? word.slice(0, at) : word;
    if (!known.includes(name) || found.some((one) => axisName(one) === name)) continue;
    found.push(name === time ? { name, grain: cut ?? grain } : name);
  }
  return found;
}

/** Writes an axis as a word. */
export const wordOf = (axis: Axis): string => {
  const grain = axisGrain(axis);
  return grain ? `${axisName(axis)}:${grain}` : axisName(axis);
};
