// What stands between a page and its language server: it may hold what the server says, repeat it, or add lies.

import type { Page, WebSocketRoute } from "playwright-core";

/** A message of the server. */
export interface Said {
  id?: number;
  method?: string;
  params?: any;
  result?: unknown;
  [more: string]: unknown;
}

export class Between {
  /** What the page gets of a message, in this order. */
  alter: (said: Said) => object[] = (said) => [said];
  private held: object[] | undefined;
  private page: WebSocketRoute | undefined;

  /** Stands between from the next address that the page opens. */
  static async of(page: Page): Promise<Between> {
    const between = new Between();
    await page.routeWebSocket(/\/lsp$/, (route) => {
      between.page = route;
      const server = route.connectToServer();
      route.onMessage((message) => server.send(message));
      server.onMessage((message) => between.alter(JSON.parse(String(message))).forEach((one) => between.tell(one)));
    });
    return between;
  }

  /** Says something to the page, or holds it. */
  tell(message: object): void {
    if (this.held) this.held.push(message);
    else this.page?.send(JSON.stringify(message));
  }
  /** Holds all that is said from now on. */
  hold(): void {
    this.held = [];
  }
  /** The number of messages that are held and hold some words. */
  holds(words: string): number {
    return this.held?.filter((message) => JSON.stringify(message).includes(words)).length ?? 0;
  }
  /** Says what was held, in some order. */
  release(order: (held: object[]) => object[] = (held) => held): void {
    const held = this.held ?? [];
    this.held = undefined;
    order(held).forEach((message) => this.tell(message));
  }
}
