// A line between browser and program that can be cut, held up, or made to end in the middle of an answer.

import { createServer, connect, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";

/** The line. */
export class Line {
  private readonly sockets = new Set<Socket>();
  private isHeld = false;
  /** Bytes of answers after which each connection is cut; none if they go through. */
  private cutsAfter: number | undefined;

  private constructor(
    private readonly server: Server,
    private target: number,
  ) {}

  /** Opens a line to a port of this machine. */
  static async open(target: number): Promise<Line> {
    const server = createServer();
    const line = new Line(server, target);
    server.on("connection", (socket) => line.join(socket));
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    return line;
  }

  private join(near: Socket) {
    if (this.isHeld) {
      near.destroy();
      return;
    }
    const far = connect(this.target, "127.0.0.1");
    let passed = 0;
    const pairs: [Socket, Socket][] = [
      [near, far],
      [far, near],
    ];
    for (const [from, to] of pairs) {
      this.sockets.add(from);
      from.on("data", (piece: Buffer) => {
        if (from === far && this.cutsAfter !== undefined) {
          const left = this.cutsAfter - passed;
          passed += piece.length;
          if (left < piece.length) {
            to.write(piece.subarray(0, Math.max(left, 0)), () => {
              near.destroy();
              far.destroy();
            });
            return;
          }
        }
        to.write(piece);
      });
      from.on("end", () => to.end());
      from.on("error", () => to.destroy());
      from.on("close", () => {
        this.sockets.delete(from);
        to.destroy();
      });
    }
  }

  /** The address of the near end. */
  get origin(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Cuts all connections that there are. */
  cut() {
    for (const socket of this.sockets) socket.destroy();
  }

  /** Cuts all connections, and refuses new ones until `mend`. */
  hold() {
    this.isHeld = true;
    this.cut();
  }

  /** Cuts every further connection after so many bytes of answers. */
  cutAfter(bytes: number) {
    this.cutsAfter = bytes;
    this.cut();
  }

  /** Lets everything through again. */
  mend() {
    this.isHeld = false;
    this.cutsAfter = undefined;
  }

  /** Leads to another port from now on. */
  lead(target: number) {
    this.target = target;
    this.cut();
  }

  /** Ends the line. */
  close() {
    this.cut();
    this.server.close();
  }
}
