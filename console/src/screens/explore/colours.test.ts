import { expect, test } from "vitest";
import { coloursOf, contrast, radiusOf, safe, type Rgb } from "./colours";

const rgb = (text: string): Rgb | undefined => {
  const names: Record<string, string> = { white: "#ffffff", yellow: "#ffff00", navy: "#000080" };
  const found = /^#(..)(..)(..)$/.exec(names[text] ?? text);
  return found ? (found.slice(1).map((part) => parseInt(part, 16)) as Rgb) : undefined;
};

test("colours of a theme are taken where they can be read, ours stay where not", () => {
  expect(contrast([0, 0, 0], [255, 255, 255])).toBeCloseTo(21);
  const theme = { light: { primary: "0b6e99", "kpi-positive": "yellow", "fg-primary": "#eeeeee", "surface-background": "navy", "color-qualitative-1": "#aa2200" }, dark: { primary: "navy" } };
  expect([...coloursOf(theme, "light", rgb)]).toEqual([["--chart", "#0b6e99"], ["--line-0", "#aa2200"]]);
  expect([...coloursOf(theme, "dark", rgb)]).toEqual([]);
  expect([...coloursOf({ primary_color: "navy" }, "light", rgb)]).toEqual([["--chart", "navy"]]);
  expect([...coloursOf(null, "light", rgb)]).toEqual([]);
});

test("scales, borders and cards of a theme are taken too, by the names that they had before", () => {
  const theme = { light: { card: "#fafafa", "surface-hover": "#333333", border: "#cccccc", "color-sequential-1": "#fdfdfd", "color-sequential-9": "#003300", "color-diverging-11": "#aa0000", "color-qualitative-24": "#553300", "fg-primary": "#767676" } };
  expect(Object.fromEntries(coloursOf(theme, "light", rgb))).toEqual({ "--card": "#fafafa", "--line": "#cccccc", "--sequential-0": "#fdfdfd", "--sequential-8": "#003300", "--diverging-10": "#aa0000", "--line-23": "#553300" });
});

test("what is more than a colour is none", () => {
  for (const text of ["url(https://example.org)", "red; background: url(x)", "var(--bg)", "env(x)", "image-set('x')", "rgb(0,0,0) url(x)", "expression(1)", "x".repeat(200), 7, null]) expect(safe(text, () => true), String(text)).toBeUndefined();
  for (const text of ["red", "#abc", "0b6e99", "rgb(1 2 3 / 50%)", "hsl(120deg, 10%, 20%)", "oklch(0.5 0.1 20)"]) expect(safe(text, () => true), text).toBeDefined();
});

test("menus, fields, tooltips, headings and what has the focus have colours of their own, if they can be read", () => {
  const theme = { light: { popover: "#eeffff", "popover-foreground": "#330000", tooltip: "navy", "surface-header": "#f0f0f0", ring: "#c2571a", input: "#888888", "fg-secondary": "#333333", "icon-default": "yellow", destructive: "#a00000" } };
  expect(Object.fromEntries(coloursOf(theme, "light", rgb))).toEqual({ "--popover": "#eeffff", "--header": "#f0f0f0", "--popover-text": "#330000", "--ring": "#c2571a", "--input": "#888888", "--title": "#333333", "--failed": "#a00000" });
});

test("corners are as round as a theme says, within bounds", () => {
  const of = (radius: unknown) => radiusOf({ light: { radius } });
  expect(["4px", "0.75rem", "1em", "0", "32px", " 2px "].map(of)).toEqual(["4px", "0.75rem", "1em", "0px", "32px", "2px"]);
  expect(["33px", "3rem", "50%", "4px; color: red", "calc(1px)", "", 4, null, "-1px"].map(of)).toEqual(Array<undefined>(9).fill(undefined));
  expect(radiusOf({ dark: { radius: "3px" } })).toBe("3px");
});
