// Light, dark, or what the system wishes.

const KEY = "watershed-theme";
const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

function stored(): Theme {
  try {
    const theme = localStorage.getItem(KEY) as Theme;
    return THEMES.includes(theme) ? theme : "system";
  } catch {
    return "system";
  }
}

let chosen = $state(stored());
/** Counts changes of colours, for what is drawn and not styled. */
let changes = $state(0);

function apply(): void {
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  changes += 1;
}
apply();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (changes += 1));

/** The theme of the console. */
export const theme = {
  get chosen(): Theme {
    return chosen;
  },
  get changes(): number {
    return changes;
  },
  /** Goes on to the next one, and remembers it. */
  next(): void {
    chosen = THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length] as Theme;
    try {
      localStorage.setItem(KEY, chosen);
    } catch {}
    apply();
  },
};
