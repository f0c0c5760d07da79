// The present, for ages on the page. It moves on once a second, while anybody looks.

let value = $state(Date.now());

if (typeof document !== "undefined") {
  setInterval(() => {
    if (!document.hidden) value = Date.now();
  }, 1_000);
}

/** The present in milliseconds. */
export const now = {
  get value() {
    return value;
  },
};
