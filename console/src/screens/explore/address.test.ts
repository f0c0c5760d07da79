// Addresses: whatever is looked at comes back from its words.

import { expect, test } from "vitest";
import { read, toggled, write, type Filter } from "./address";

const back = (words: string) => write(read(new URLSearchParams(words))).toString();

test("a view comes back from its address, word by word", () => {
  for (const words of [
    "range=P4W",
    "range=2013-02-01+to+2013-03-01&grain=day&zone=America%2FNew_York&compare=-1Y&by=origin",
    "view=pivot&measures=flights&rows=origin%2Cday%3Amonth&columns=weekday",
    "sort=flights&rank=change&order=ascending",
    "is.origin=JFK&is.origin=LGA&not.airline=Delta%2C+Inc.&has.destination=x%3Dy%26z",
    "empty.airline=yes&is.airline=&filled.origin=yes",
    "of.airline=mean_delay%3E10&of.airline=flights%3A1..2.5&of.origin=flights%3C-1e3",
    "measures=",
  ]) {
    expect(back(words)).toBe(words);
    expect(read(new URLSearchParams(words)).unread).toEqual([]);
  }
});

test("what can't be read is named, and the rest holds", () => {
  const words = new URLSearchParams("range=P4W&grain=fortnight&zone=Mars&view=x&of.airline=many&empty.a=1&is.=x&order=up&token=abc&__proto__=1");
  words.append("has.origin", "x".repeat(600));
  const view = read(words);
  expect(view.range).toBe("P4W");
  expect(view.filters).toEqual([]);
  expect(view.unread.map((word) => word.split("=")[0])).toEqual(["grain", "zone", "view", "of.airline", "empty.a", "is.", "order", "token", "__proto__", "has.origin"]);
  expect(write(view).toString()).toBe("range=P4W");
});

test("numbers of conditions are bounded", () => {
  const words = new URLSearchParams();
  for (let number = 0; number < 300; number++) words.append("is.origin", String(number));
  const view = read(words);
  expect(view.filters).toHaveLength(1);
  expect(view.unread).toHaveLength(100);
});

test("a condition that is said twice stands once", () => {
  const view = read(new URLSearchParams("has.origin=J&has.origin=J&lacks.origin=J&of.origin=n%3E1&of.origin=n%3E1&is.origin=a&is.origin=a"));
  expect(view.unread).toEqual([]);
  expect(write(view).toString()).toBe("has.origin=J&lacks.origin=J&of.origin=n%3E1&is.origin=a");
});

test("a click includes a value, takes it away again, and moves it from what is excluded", () => {
  const once = toggled([], "origin", "JFK", false);
  expect(once).toEqual<Filter[]>([{ sort: "values", field: "origin", isNot: false, values: ["JFK"] }]);
  const twice = toggled(once, "origin", null, false);
  expect(twice).toMatchObject([{ values: ["JFK", null] }]);
  expect(toggled(once, "origin", "JFK", false)).toEqual([]);
  expect(toggled(twice, "origin", "JFK", true)).toMatchObject([
    { isNot: false, values: [null] },
    { isNot: true, values: ["JFK"] },
  ]);
  expect(toggled([{ sort: "contains", field: "origin", isNot: false, text: "J" }], "origin", "JFK", false)).toHaveLength(2);
});

test("a board's words are its variables, its tabs and the conditions of its file; an explore has none of them", () => {
  const words = "range=P4W&let.country=DE&let.note=&tab.more=By+hour&filters=none&is.origin=JFK";
  const view = read(new URLSearchParams(words), "canvas");
  expect(view).toMatchObject({ variables: { country: "DE", note: "" }, tabs: { more: "By hour" }, isBare: true, unread: [] });
  expect(write(view).toString()).toBe(words);
  expect(read(new URLSearchParams(words)).unread).toEqual(["let.country=DE", "let.note=", "tab.more=By hour", "filters=none"]);
  expect(read(new URLSearchParams("view=pivot&grain=day&let.__proto__=x&let.=x&filters=all"), "canvas").unread).toHaveLength(5);
});
