import { expect, test, vi } from "vitest";
import { Fetched } from "./fetched.svelte.ts";

/** Questions that are answered by hand, in the order in which they were asked. */
function byHand() {
  const asked: { answer(value: string): void; refuse(): void; signal: AbortSignal }[] = [];
  const ask = (signal: AbortSignal) =>
    new Promise<string>((answer, refuse) => asked.push({ answer, refuse: () => refuse(new Error("refused")), signal }));
  return { asked, ask };
}

const rest = () => new Promise((done) => setTimeout(done, 0));

test("what there was stays when the next answer fails, with the problem", async () => {
  const { asked, ask } = byHand();
  const fetched = new Fetched(ask);
  void fetched.reload();
  asked[0]?.answer("first");
  await rest();
  void fetched.reload();
  asked[1]?.refuse();
  await rest();
  expect([fetched.value, fetched.problem?.retryable, fetched.isLoading]).toEqual(["first", true, false]);
});

test("what is asked while an answer is awaited is asked once more after it, also after one that failed", async () => {
  for (const first of ["answer", "refuse"] as const) {
    const { asked, ask } = byHand();
    const fetched = new Fetched(ask);
    void fetched.reload();
    void fetched.reload();
    void fetched.reload();
    expect(asked.length).toBe(1);
    asked[0]?.[first]("old");
    await rest();
    expect(asked.length).toBe(2);
    asked[1]?.answer("new");
    await rest();
    expect([fetched.value, fetched.problem]).toEqual(["new", undefined]);
    expect(asked.length).toBe(2);
  }
});

test("an answer that comes after the end changes nothing, and its work is cancelled", async () => {
  const { asked, ask } = byHand();
  const fetched = new Fetched(ask);
  void fetched.reload();
  fetched.stop();
  expect(asked[0]?.signal.aborted).toBe(true);
  void fetched.reload();
  asked[0]?.answer("late");
  await rest();
  expect(fetched.value).toBeUndefined();
  asked[1]?.answer("new");
  await rest();
  expect([fetched.value, fetched.isLoading]).toEqual(["new", false]);
});

test("an answer that is behind is asked for until it is not, at most for a minute, and at once when there is news", async () => {
  vi.useFakeTimers();
  try {
    let [asked, has] = [0, "old"];
    const fetched = new Fetched(async () => (asked++, has), (value) => value === "old");
    void fetched.reload();
    // A service that stalls for seconds.
    await vi.advanceTimersByTimeAsync(20_000);
    expect([fetched.value, fetched.isLoading, asked]).toEqual(["old", false, 7]);
    has = "new";
    await vi.advanceTimersByTimeAsync(15_000);
    expect([fetched.value, asked]).toEqual(["new", 8]);
    has = "old";
    void fetched.reload();
    await vi.advanceTimersByTimeAsync(600_000);
    expect([fetched.value, asked]).toEqual(["old", 17]);
    void fetched.reload();
    await vi.advanceTimersByTimeAsync(40_000);
    expect(asked).toBe(25);
    has = "new";
    void fetched.reload();
    await vi.advanceTimersByTimeAsync(0);
    expect([fetched.value, asked]).toEqual(["new", 26]);
  } finally {
    vi.useRealTimers();
  }
});
