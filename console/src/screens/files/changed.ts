// The one place in which two texts differ: what stands before and behind it need not move, nor does a cursor there.

/** Returns what has to be put in the place of a part of the one text so that it becomes the other. */
export function differing(from: string, to: string): { from: number; to: number; insert: string } {
  const most = Math.min(from.length, to.length);
  let begin = 0;
  while (begin < most && from[begin] === to[begin]) begin++;
  let end = 0;
  while (end < most - begin && from[from.length - 1 - end] === to[to.length - 1 - end]) end++;
  return { from: begin, to: from.length - end, insert: to.slice(begin, to.length - end) };
}
