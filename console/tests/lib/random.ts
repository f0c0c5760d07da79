// Random numbers that a seed repeats.

/** The seed of this run; a failure names the one to repeat it with. */
export const SEED = Number(process.env.WATERSHED_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** Returns a source of numbers below a bound. Marsaglia: Xorshift RNGs, https://doi.org/10.18637/jss.v008.i14 */
export function random(seed: number): (below: number) => number {
  let state = seed | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}
