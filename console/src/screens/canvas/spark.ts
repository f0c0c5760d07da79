// A small line: points of a box, with a gap where there is no value.

export const WIDTH = 200;
export const HEIGHT = 32;

/** Returns true if there is a line to draw: one value alone is a dot that nobody sees. */
export const isLine = (values: (number | null)[]): boolean => values.filter((value) => value !== null).length > 1;

/** The pieces of a line, each as the points of a polyline. A value alone is a short dash. */
export function pieces(values: (number | null)[]): string[] {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return [];
  const [low, high] = known.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [known[0]!, known[0]!]);
  const step = values.length > 1 ? WIDTH / (values.length - 1) : WIDTH;
  const at = (value: number) => (high === low ? HEIGHT / 2 : 1 + (HEIGHT - 2) * (1 - (value - low) / (high - low)));
  const round = (number: number) => Math.round(number * 10) / 10;
  const found: string[][] = [];
  values.forEach((value, place) => {
    if (value === null) return;
    if (place === 0 || values[place - 1] === null) found.push([]);
    found.at(-1)!.push(`${round(place * step)},${round(at(value))}`);
  });
  return found.map((points) => (points.length > 1 ? points : [points[0]!, points[0]!.replace(/^[\d.]+/, (x) => String(round(Number(x) + 1)))]).join(" "));
}
