// The colours of an author's theme, as far as what is written on them can be read.

/** A colour as the screen has it: red, green and blue, from 0 to 255. */
export type Rgb = [number, number, number];

/** Our own colours, on a light and on a dark ground. */
const OURS = {
  light: { "--bg": "#ffffff", "--text": "#1a2027", "--muted": "#586471", "--accent": "#1d5fc4" },
  dark: { "--bg": "#0f1317", "--text": "#e2e7ed", "--muted": "#97a3b0", "--accent": "#79aaf5" },
} as const;

/** Variables of themes, with ours that they stand for, and the contrast that these need with the ground. */
const MAPPED: [string, string, number][] = [
  ["primary", "--chart", 3],
  ["secondary", "--chart-before", 3],
  ["kpi-positive", "--up", 4.5],
  ["kpi-negative", "--down", 4.5],
  ["fg-primary", "--text", 4.5],
  ["fg-muted", "--muted", 4.5],
  ["fg-accent", "--accent", 4.5],
  ["fg-secondary", "--title", 4.5],
  ["popover-foreground", "--popover-text", 4.5],
  ["icon-default", "--icon", 3],
  ["destructive", "--failed", 4.5],
  ["ring-focus", "--ring", 3],
  ["border", "--line", 1],
  ["input", "--input", 1],
  ...scale("color-qualitative", "--line", 24, 3),
  // Steps of a scale are told from each other, and not from the ground.
  ...scale("color-sequential", "--sequential", 9, 1),
  ...scale("color-diverging", "--diverging", 11, 1),
];

function scale(name: string, ours: string, count: number, least: number): [string, string, number][] {
  return Array.from({ length: count }, (_, place) => [`${name}-${place + 1}`, `${ours}-${place}`, least]);
}

/** Grounds of parts of the page, with ours that they stand for. */
const GROUNDS = [
  ["surface-subtle", "--subtle"],
  ["surface-card", "--card"],
  ["surface-muted", "--surface"],
  ["surface-hover", "--hover"],
  ["surface-active", "--active"],
  ["surface-header", "--header"],
  ["popover", "--popover"],
  ["popover-accent", "--popover-hover"],
  ["tooltip", "--tooltip"],
] as const;

/** Names that variables had before. */
const OLD: Record<string, string> = {
  foreground: "fg-primary",
  "card-foreground": "fg-secondary",
  "muted-foreground": "fg-muted",
  "accent-foreground": "fg-accent",
  accent: "popover-accent",
  surface: "surface-background",
  card: "surface-card",
  muted: "surface-muted",
  background: "surface-subtle",
  ring: "ring-focus",
};

function luminance(rgb: Rgb): number {
  const [red = 0, green = 0, blue = 0] = rgb.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** The contrast of two colours. WCAG 2.2, https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio */
export function contrast(one: Rgb, other: Rgb): number {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

/** Returns a text if it is nothing but a colour. */
export function safe(text: unknown, isColour: (text: string) => boolean): string | undefined {
  if (typeof text !== "string" || text.length > 100) return undefined;
  const said = /^[0-9a-f]{3,8}$/i.test(text) ? `#${text}` : text.trim();
  return /^(#[0-9a-f]{3,8}|[a-z]+|(rgb|hsl)a?\([\d\s.,%/+-]+(deg)?[\d\s.,%/+-]*\)|(hwb|lab|lch|oklab|oklch)\([\d\s.,%/+-]+\))$/i.test(said) && isColour(said) ? said : undefined;
}

type Theme = Record<string, unknown>;
const block = (value: unknown): Theme => (typeof value === "object" && value !== null ? (value as Theme) : {});

/** Returns our variables as a theme has them on one ground: those colours alone that can be told from it. */
export function coloursOf(theme: unknown, ground: "light" | "dark", rgb: (colour: string) => Rgb | undefined): Map<string, string> {
  const all = block(theme);
  const old = { primary: all.primary_color, secondary: all.secondary_color };
  const own = block(all[ground]);
  const renamed = Object.entries(OLD).map(([before, now]) => [now, own[before]] as const);
  const said = { ...old, ...Object.fromEntries(renamed.filter(([, value]) => value !== undefined)), ...own } as Theme;
  const found = new Map<string, string>();
  const colour = (name: string) => {
    const text = safe(said[name], (text) => rgb(text) !== undefined);
    return text === undefined ? undefined : { text, rgb: rgb(text)! };
  };
  const ours = OURS[ground];
  let bg = rgb(ours["--bg"])!;
  const isGround = (one: { rgb: Rgb } | undefined) => one && (["--text", "--muted", "--accent"] as const).every((name) => contrast(rgb(ours[name])!, one.rgb) >= 4.5);
  const back = colour("surface-background");
  if (back && isGround(back)) {
    bg = back.rgb;
    found.set("--bg", back.text);
  }
  const grounds = [bg];
  for (const [name, variable] of GROUNDS) {
    const one = colour(name);
    if (!one || !isGround(one)) continue;
    grounds.push(one.rgb);
    found.set(variable, one.text);
  }
  for (const [name, variable, least] of MAPPED) {
    const one = colour(name);
    if (one && grounds.every((ground) => contrast(one.rgb, ground) >= least)) found.set(variable, one.text);
  }
  return found;
}

/** Returns how round corners are: a plain length that leaves room for what stands in them. */
export function radiusOf(theme: unknown): string | undefined {
  const said = ["light", "dark"].map((ground) => block(block(theme)[ground]).radius).find((one) => typeof one === "string");
  const [, number, unit] = /^(\d{1,2}(?:\.\d+)?|\.\d+)(px|rem|em)$|^0$/.exec(String(said ?? "").trim()) ?? [];
  if (said === undefined) return undefined;
  if (number === undefined) return String(said).trim() === "0" ? "0px" : undefined;
  return Number(number) * (unit === "px" ? 1 : 16) <= 32 ? `${number}${unit}` : undefined;
}

/** Lays a theme over one element: as a sheet that is made by calls, in which nothing is parsed but single colours. Returns what takes it away. */
export function lay(theme: unknown, selector: string): () => void {
  const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const rgb = (colour: string): Rgb | undefined => {
    if (!context || !CSS.supports("color", colour)) return undefined;
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [red = 0, green = 0, blue = 0, alpha = 0] = context.getImageData(0, 0, 1, 1).data;
    return alpha === 255 ? [red, green, blue] : undefined;
  };
  const grounds = { light: coloursOf(theme, "light", rgb), dark: coloursOf(theme, "dark", rgb) };
  const sheet = new CSSStyleSheet();
  const rule = sheet.cssRules[sheet.insertRule(`${selector} {}`)] as CSSStyleRule;
  for (const name of new Set([...grounds.light.keys(), ...grounds.dark.keys()])) {
    const [light, dark] = [grounds.light.get(name), grounds.dark.get(name)];
    // Where neither the theme nor the page has one, there is none to be seen: a scale of a dark ground is none of a light one.
    rule.style.setProperty(name, `light-dark(${light ?? `var(${name}-light, transparent)`}, ${dark ?? `var(${name}-dark, transparent)`})`);
  }
  const radius = radiusOf(theme);
  if (radius !== undefined) rule.style.setProperty("--radius", radius);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  return () => (document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet));
}
