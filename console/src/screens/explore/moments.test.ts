import { expect, test } from "vitest";
import { endOf, isUnfinished, zoomed } from "./moments";

const at = (text: string) => Date.parse(text);

test("buckets end where the next one begins", () => {
  expect(endOf(at("2013-02-01T05:00Z"), "month")).toBe(at("2013-03-01T05:00Z"));
  expect(endOf(at("2013-01-31T15:00Z"), "month")).toBe(at("2013-02-28T15:00Z"));
  expect(endOf(at("2013-10-01T00:00Z"), "quarter")).toBe(at("2014-01-01T00:00Z"));
  expect(endOf(at("2013-02-01T05:00Z"), "hour")).toBe(at("2013-02-01T06:00Z"));
});

test("a bucket is unfinished where the range, the watermark or the present cuts it", () => {
  const whole = ["2014-01-01T05:00:00Z", "2014-01-01T04:59:00Z", "hour"] as const;
  expect(isUnfinished(at("2013-12-01T05:00Z"), "month", ...whole)).toBe(false);
  expect(isUnfinished(at("2013-12-30T05:00Z"), "week", ...whole)).toBe(true);
  expect(isUnfinished(at("2013-12-01T05:00Z"), "month", "2014-01-01T05:00:00Z", "2013-12-20T00:00:00Z", "hour")).toBe(true);
  expect(isUnfinished(at("2013-12-01T05:00Z"), "month", "2014-01-01T05:00:00Z", undefined, undefined, at("2013-12-20"))).toBe(true);
});

test("a drawn span is a range of days by the clock of the zone, or of instants", () => {
  expect(zoomed(at("2013-02-01T05:00Z"), at("2013-02-08T05:00Z"), "America/New_York")).toBe("2013-02-01 to 2013-02-08");
  expect(zoomed(at("2013-02-01T05:00Z"), at("2013-02-01T09:00Z"), "UTC")).toBe("2013-02-01T05:00Z to 2013-02-01T09:00Z");
});
