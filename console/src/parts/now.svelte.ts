// The present, for ages on the page. It moves on once a second, while anybody looks.

let value = $state(Date.now());
let hasMoved = $state(false);

if (typeof document !== "undefined") {
  setInterval(() => {
    if (!document.hidden) [value, hasMoved] = [Date.now(), true];
  }, 1_000);
}

/** The present in milliseconds. */
export const now = {
  get value() {
    return value;
  },
  /** False in the first second of a page, which has no time for what nobody sees at once. */
  get hasMoved() {
    return hasMoved;
  },
};
