// Lines, areas and bars.

import { across, spread, stacked, withLone, type Across } from "./across";
import { framed, legendOf, namesAxis, numberAxis, numberScale, timeAxis, type Chart, type Ground } from "./chart";
import { channel, type Loose } from "./settings";

/** Turns a spec's directions if the dimension goes up. */
function turned(encoding: Loose, isLying: boolean): Loose {
  const pairs: Record<string, string> = { x: "y", x2: "y2", xOffset: "yOffset", y: "x", y2: "x2" };
  return isLying ? Object.fromEntries(Object.entries(encoding).map(([key, value]) => [pairs[key] ?? key, value])) : encoding;
}

/** The axis of the dimension. */
export function dimensionAxis({ isTime, ends, isLying, x, along, places }: Across, { width, height }: Ground, isBand: boolean): Loose {
  if (isTime) return { field: "x", type: "temporal", scale: { type: "utc", nice: false, ...(ends ? { domainMin: ends[0], domainMax: ends[1] } : {}) }, axis: timeAxis(x, along, places as number[], isLying ? height : width) };
  const names = places as string[];
  return { field: "x", type: "nominal", sort: null, scale: { domain: names, ...(isBand ? { paddingInner: 0.2, paddingOuter: 0.1 } : { type: "point", padding: 0.3 }) }, axis: namesAxis(x.title, along, names, width, isLying) };
}

/** The colours of series, with their legend. */
export function seriesColour({ series, colour }: Pick<Across, "series" | "colour">, { width }: Pick<Ground, "width">): Loose {
  const names = series.map(({ name }) => name);
  return { field: "s", type: "nominal", sort: null, scale: { domain: names, range: series.map((one) => one.colour) }, legend: legendOf(colour, names, width) };
}

function said({ series, x, y, rows }: Across, what: string, more: string): string {
  const measures = new Set(series.map(({ measure }) => measure.title));
  const shown = rows.filter((row) => row.y !== null).length;
  return `${what} of ${[...(measures.size > 3 ? [y.title, `${measures.size - 1} more`] : measures)].join(", ")} by ${x.title}${more}, ${shown.toLocaleString()} values`;
}

const measureAxis = (found: Across, ground: Ground, isShare: boolean): Loose => {
  const { y, up, series, isLying } = found;
  const axis = numberAxis(y, up, isLying ? ground.width : ground.height);
  const single = new Set(series.map(({ measure }) => measure.place)).size === 1;
  return isShare ? { ...axis, title: single && up.isTitled ? `share of ${y.title}` : "share", format: ".0%", formatType: "number" } : single ? axis : { ...axis, title: up.title ?? null };
};

/** Lines and areas. */
export function lines(ground: Ground): Chart {
  const found = across(ground);
  const isArea = ground.renderer === "area_chart";
  const { rows, up, notes, series, by } = found;
  withLone(found);
  if (isArea) stacked(found, false);
  const place = dimensionAxis(found, ground, false);
  const colour = seriesColour(found, ground);
  const y: Loose = { field: "y", type: "quantitative", scale: numberScale(up, isArea), axis: measureAxis(found, ground, false), ...(isArea ? { stack: null } : {}) };
  const isLying = found.isLying;
  // What is missing breaks lines and areas, and isn't drawn as a point.
  const path = isArea ? { type: "area", opacity: series.length > 1 ? 0.8 : 0.45, line: false, invalid: "break-paths-show-path-domains", orient: isLying ? "horizontal" : "vertical" } : { type: "line", invalid: "break-paths-show-path-domains", orient: isLying ? "horizontal" : "vertical" };
  const encoding = (more: Loose): Loose => turned({ x: place, y, color: colour, ...more }, isLying);
  const spec = framed(ground, {
    data: { values: rows },
    layer: [
      { mark: path, encoding: encoding(isArea ? { y2: { field: "y0" }, order: { value: null } } : { order: pathOrder(found.isTime) }) },
      { mark: { type: "point", filled: true, size: 30, invalid: "filter", cursor: found.chosen ? "pointer" : "default" }, encoding: encoding({ opacity: { condition: { test: "datum.lone", value: 1 }, value: 0 }, tooltip: { field: "tip", type: "nominal" } }) },
    ],
  });
  return { spec, notes, summary: said(found, isArea ? "area chart" : "line chart", by ? ` and ${by.title}` : ""), pick: found.pick, nearest: isLying ? "y" : "x" };
}

/** Lines over names follow the order of the rows, which is that of the axis. Areas always do: by a field of their order each place would be an area. */
const pathOrder = (isTime: boolean): Loose => (isTime ? { field: "x", type: "quantitative" } : { value: null });

/** Bars: beside each other, on top of each other, or as shares. */
export function bars(ground: Ground): Chart {
  const found = across(ground);
  const { rows, notes, series, isTime, isLying, up, by } = found;
  const isShare = ground.renderer === "stacked_bar_normalized";
  const isBeside = ground.renderer === "bar_chart" && series.length > 1;
  if (!isBeside) stacked(found, isShare);
  if (isTime) spread(found, isBeside);
  const names = series.map(({ name }) => name);
  const encoding = {
    x: dimensionAxis(found, ground, true),
    ...(isTime ? { x2: { field: "x2" } } : {}),
    ...(isBeside && !isTime ? { xOffset: { field: "s", type: "nominal", sort: null, scale: { domain: names } } } : {}),
    y: { field: "y", type: "quantitative", scale: isShare ? { zero: true } : numberScale(up, true), axis: measureAxis(found, ground, isShare), stack: null },
    y2: { field: "y0" },
    color: seriesColour(found, ground),
    tooltip: { field: "tip", type: "nominal" },
  };
  const spec = framed(ground, {
    // A bar of nothing would stand for zero.
    data: { values: rows.filter((row) => row.y !== null) },
    mark: { type: "bar", orient: isLying ? "horizontal" : "vertical", cursor: found.chosen ? "pointer" : "default" },
    encoding: turned(encoding, isLying),
  });
  return { spec, notes, summary: said(found, isBeside || series.length === 1 ? "bar chart" : isShare ? "bars of shares" : "stacked bars", by ? ` and ${by.title}` : ""), pick: found.pick };
}

/** Bars of one measure and a line of another, each with an axis of its own. */
export function combo(ground: Ground): Chart {
  const found = across(ground, ["y1", "y2"]);
  const { notes, series, isTime, pick } = found;
  withLone(found);
  if (isTime) spread(found, false);
  const shared = { x: dimensionAxis(found, ground, true), color: seriesColour(found, ground) };
  const tooltip = { field: "tip", type: "nominal" };
  const settings = [channel(ground.properties, "y1"), channel(ground.properties, "y2")];
  const layer = settings.flatMap((setting, side): Loose[] => {
    const mine = side === 0 ? series.slice(0, setting.fields.length) : series.slice(settings[0]!.fields.length);
    if (mine.length === 0) return [];
    const isBars = (setting.mark ?? (side === 0 ? "bar" : "line")) === "bar";
    const values = found.rows.filter((row) => mine.some(({ name }) => name === row.s));
    const y: Loose = { field: "y", type: "quantitative", scale: numberScale(setting, isBars), axis: { ...numberAxis(mine[0]!.measure, setting, ground.height), orient: side === 0 ? "left" : "right", grid: side === 0 } };
    if (isBars) return [{ data: { values: values.filter((row) => row.y !== null) }, mark: { type: "bar" }, encoding: { ...shared, ...(isTime ? { x2: { field: "x2" } } : {}), y: { ...y, stack: null }, y2: { field: "y0" }, tooltip } }];
    const middle = isTime ? values.map((row) => ({ ...row, x: ((row.x as number) + (row.x2 as number)) / 2 })) : values;
    return [
      {
        data: { values: middle },
        layer: [
          { mark: { type: "line", invalid: "break-paths-show-path-domains" }, encoding: { ...shared, y, order: pathOrder(isTime) } },
          { mark: { type: "point", filled: true, size: 40, invalid: "filter" }, encoding: { ...shared, y, tooltip } },
        ],
      },
    ];
  });
  const spec = framed(ground, { layer, resolve: { scale: { y: "independent" } } });
  return { spec, notes, summary: said(found, "bars and lines", ""), pick, nearest: "x" };
}
