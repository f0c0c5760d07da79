import { expect, test, vi } from "vitest";
import type { Service } from "../../service";
import { Board } from "./board.svelte";
import type { Asked } from "./document";
import { Sight } from "./sight.svelte";
import { questionOf } from "./ask.svelte";
import { cutTo, isOverTime, timeOf } from "./times";

vi.mock("../../router", () => ({ place: { url: new URL("http://localhost/") }, go: () => {} }));

const part = (time_filters: unknown, more: Record<string, unknown> = {}) => ({ renderer: "kpi", properties: { time_filters, ...more } });
const NOTHING = { range: undefined, compare: undefined, zone: undefined, grain: undefined, unread: [] };

test("the words of a component's own time are read, and those without a meaning are named", () => {
  expect(timeOf(part("tr=P4W&compare_tr=rill-PP&grain=week"))).toEqual({ ...NOTHING, range: "P4W", compare: "rill-PP", grain: "week" });
  expect(timeOf(part("tr=7D%20as%20of%20latest%2FD%2B1D&tz=Europe/Berlin"))).toEqual({ ...NOTHING, range: "7D as of latest/D+1D", zone: "Europe/Berlin" });
  expect(timeOf(part("tr=P7D&f=origin IN ('JFK')&grain=fortnight&tz=Nowhere"))).toEqual({ ...NOTHING, range: "P7D", unread: ["grain=fortnight", "tz=Nowhere"] });
  // What draws no comparison says that it does not.
  expect(timeOf({ ...part("tr=P7D&compare_tr=rill-PW"), renderer: "table" })).toEqual({ ...NOTHING, range: "P7D", unread: ["compare_tr=rill-PW"] });
  for (const none of [undefined, "", " ", 7, { tr: "P4W" }]) expect(timeOf(part(none))).toBeUndefined();
});

test("times are cut to a component's own grain, but for those that a field names, and never below the smallest", () => {
  const asked: Asked = { metrics_view: "v", dimensions: [{ name: "day", grain: "hour" }, "origin", { name: "day_rill_TIME_GRAIN_MONTH", compute: { time_floor: { dimension: "day", grain: "month" } } }] };
  const grains = (of: Asked) => of.dimensions?.map((one) => (typeof one === "string" ? one : "grain" in one ? one.grain : one.compute.time_floor.grain));
  expect(grains(cutTo(asked, "Day", "week", "hour"))).toEqual(["week", "origin", "month"]);
  expect(grains(cutTo(asked, "day", "minute", "hour"))).toEqual(["hour", "origin", "month"]);
  expect(cutTo(asked, "day", undefined, "hour")).toBe(asked);
  expect(isOverTime({ renderer: "line_chart", properties: {}, queries: [asked] })).toBe(true);
  expect(isOverTime({ renderer: "kpi", properties: { sparkline: "none" }, queries: [{ metrics_view: "v", measures: ["n"] }] })).toBe(false);
});

test("a component with a range of its own asks for that one and its comparison, whatever the board says", () => {
  const board = new Board({} as Service, "front");
  const own = (words: string | undefined) => {
    const sight = new Sight({} as Service, board, "v", words === undefined ? undefined : timeOf(part(words)));
    sight.declared = { view: "v", title: "", description: "", banner: "", time: "day", smallest: "day", measures: [], dimensions: [], ranges: [], allowsCustom: true, zones: [], isZoneFixed: false, defaults: { range: "PT24H", measures: undefined, dimensions: undefined, compares: true, by: undefined }, theme: undefined, ownTheme: undefined };
    return questionOf(sight, { metrics_view: "v", dimensions: [{ name: "day", grain: "day" }], measures: ["n"] }, 1, true).query;
  };
  expect(own(undefined)).toMatchObject({ time_range: "PT24H", comparison_time_range: { offset: "-1P" }, time_zone: "UTC" });
  expect(own("tr=P4W&compare_tr=rill-PW&grain=week")).toMatchObject({ time_range: "P4W", comparison_time_range: { offset: "rill-PW" }, dimensions: [{ name: "day", grain: "week" }] });
  // Without one of its own it is compared with nothing, as its author did not ask for that.
  expect(own("tr=P4W&tz=Europe/Berlin")).toEqual({ time_range: "P4W", time_zone: "Europe/Berlin", dimensions: [{ name: "day", grain: "day" }], measures: ["n"] });
  expect(own("grain=month")).toMatchObject({ time_range: "PT24H", comparison_time_range: { offset: "-1P" }, dimensions: [{ name: "day", grain: "month" }] });
});
