// What a page knows when its own line gives way to that of all tabs.

import { expect, test } from "vitest";
import { follow } from "./hub";
import { Line, type News } from "./line";

/** A service whose stream says what it is told to, and goes on from any token. */
class Service {
  private stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  asked: string[] = [];

  ask = async (address: string): Promise<Response> => {
    this.asked.push(address);
    const body = new ReadableStream<Uint8Array>({ start: (stream) => void (this.stream = stream) });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };

  say(text: string): void {
    this.stream?.enqueue(new TextEncoder().encode(text));
  }
}

const changed = (name: string, id?: string) =>
  `event: changed\n${id ? `id: ${id}\n` : ""}data: ${JSON.stringify({ kind: "model", name })}\n\n`;
const rest = () => new Promise((done) => setTimeout(done, 0));

test("what was read just before the worker takes over is known to the page", async () => {
  const service = new Service();
  const known = new Set<string>();
  const take = ({ moved }: News) => {
    if (moved?.isWhole) known.clear();
    moved?.put.forEach(({ name }) => known.add(name));
  };
  const own = new Line("watch", take, { isPassedOn: true, ask: service.ask });
  await rest();
  service.say(`${changed("orders")}event: listed\nid: 1\ndata: {}\n\n`);
  await expect.poll(() => [...known]).toEqual(["orders"]);
  // Whole, and between two drawings; then half a batch, which the worker asks for again.
  service.say(changed("late", "2"));
  service.say(changed("half"));
  await rest();
  const passed = own.leave();
  expect(passed?.pieces.length).toBe(3);
  const asked = globalThis.fetch;
  globalThis.fetch = service.ask as typeof fetch;
  try {
    const end = follow("watch", { tell: take }, passed);
    await rest();
    expect([...known]).toEqual(["orders", "late"]);
    expect(service.asked).toEqual(["watch", "watch?from=2"]);
    service.say(changed("half", "3"));
    await expect.poll(() => [...known]).toEqual(["orders", "late", "half"]);
    end();
  } finally {
    globalThis.fetch = asked;
  }
});
