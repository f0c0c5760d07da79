import { expect, test } from "vitest";
import { changed, reading } from "./changes";
import { numberOf } from "./format";

test("a change has the sign of the difference, and is a share of the size of what was before", () => {
  for (const [now, before] of [[-79.27, -92.5], [-100, -50], [5, -10], [12, 10], [8, 10], [-3, 10], [-10, -10]] as const) {
    const [ratio, wanted] = [(now - before) / before, (now - before) / Math.abs(before)];
    expect(numberOf(changed(ratio, now, before)), `${before} to ${now}`).toBeCloseTo(wanted, 12);
    expect(numberOf(changed(String(ratio), String(now), String(before))), `${before} to ${now}, as decimals`).toBeCloseTo(wanted, 12);
    expect(numberOf(changed(wanted, now, before)), `${before} to ${now}, right already`).toBeCloseTo(wanted, 12);
  }
  expect([changed(null, 1, -1), changed(0.5, 1, null), changed(undefined, undefined, undefined)]).toEqual([null, 0.5, undefined]);
});

test("a column of changes is read beside what it is a change of", () => {
  const columns = ["shop", "net", "net before", "net change", "paid change"].map((name) => ({ name }));
  const row = ["Quay", -79.27, -92.5, -0.143, -0.2];
  expect(columns.map((_, place) => reading(columns, place)(row))).toEqual(["Quay", -79.27, -92.5, 0.143, -0.2]);
});
