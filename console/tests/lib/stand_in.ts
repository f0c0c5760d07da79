// A server in the place of the program, which answers some requests itself and hands all others on.

import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** Answers a request itself, or returns false. */
export type Answers = (asked: IncomingMessage, answer: ServerResponse) => boolean;

/** Stands in for what listens on a port. */
export async function standIn(port: number, answers: Answers): Promise<{ home: string; close(): void }> {
  const server = createServer((asked, answer) => {
    if (answers(asked, answer)) return;
    const { method, url: path, headers } = asked;
    const passed = request({ host: "127.0.0.1", port, method, path, headers, agent: false }, (from) => {
      answer.writeHead(from.statusCode ?? 502, from.headers);
      from.pipe(answer);
      from.on("error", () => answer.destroy());
    });
    passed.on("error", () => answer.destroy());
    answer.on("close", () => passed.destroy());
    asked.pipe(passed);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { home: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close };
}

/** Writes without end, as fast as it is read. */
export function pour(answer: ServerResponse, piece: () => string) {
  const more = () => {
    while (!answer.destroyed && answer.write(piece()));
  };
  answer.on("drain", more);
  more();
}
