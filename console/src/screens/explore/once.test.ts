import { expect, test } from "vitest";
import { Once } from "./once";

test("equal tasks run once, and end when nobody waits any more", async () => {
  const once = new Once<number>();
  let ran = 0;
  let given: AbortSignal | undefined;
  const task = (signal: AbortSignal) => {
    ran += 1;
    given = signal;
    return new Promise<number>((done, failed) => {
      signal.addEventListener("abort", () => failed(signal.reason));
      if (ran === 2) done(7);
    });
  };
  const [one, other] = [new AbortController(), new AbortController()];
  const both = [once.run("a", one.signal, task), once.run("a", other.signal, task)];
  one.abort(new Error("gone"));
  await expect(both[0]).rejects.toThrow("gone");
  expect(given?.aborted).toBe(false);
  other.abort(new Error("gone too"));
  await expect(both[1]).rejects.toThrow("gone too");
  expect([ran, given?.aborted]).toEqual([1, true]);
  // What was given up is asked anew; what was answered is not, until it is forgotten.
  const stays = new AbortController().signal;
  expect(await once.run("a", stays, task)).toBe(7);
  expect(await once.run("a", stays, task)).toBe(7);
  expect(ran).toBe(2);
  once.forget();
  void once.run("a", stays, task).catch(() => {});
  expect(ran).toBe(3);
});

test("a task that fails fails for all who wait, and is tried again", async () => {
  const once = new Once<number>();
  let ran = 0;
  const task = () => (ran++ === 0 ? Promise.reject(new Error("refused")) : Promise.resolve(1));
  const { signal } = new AbortController();
  const both = [once.run("a", signal, task), once.run("a", signal, task)];
  await expect(both[0]).rejects.toThrow("refused");
  await expect(both[1]).rejects.toThrow("refused");
  expect(await once.run("a", signal, task)).toBe(1);
});
