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
/** True while all is on paper, which is light. */
let isPaper = false;

function apply(): void {
  if (isPaper) document.documentElement.dataset.theme = "light";
  else if (chosen === "system") delete document.documentElement.dataset.theme;
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
  /** Shows all in light colours while it is on paper. */
  paper(isOn: boolean): void {
    if (isOn === isPaper) return;
    isPaper = isOn;
    apply();
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
