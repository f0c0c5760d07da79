// The hub of all tabs of a browser.

import { follow, type Wish } from "./hub";

declare const self: EventTarget;

self.addEventListener("connect", (event) => {
  const [port] = (event as MessageEvent).ports;
  if (!port) return;
  let end: (() => void) | undefined;
  port.onmessage = ({ data }: MessageEvent<Wish>) => {
    end?.();
    end = "follow" in data ? follow(data.follow, { tell: (news) => port.postMessage(news) }, data.known) : undefined;
  };
  // Where browsers tell of a tab that crashed.
  port.addEventListener("close", () => end?.());
});
