// The drawing of a chart over time: lines, gaps, and the cursor. It draws what the service answered.

import type uPlot from "uplot";

/** A line: a value for each bucket, none where there is none. */
export interface Line {
  name: string;
  values: (number | null)[];
  /** Variable of style sheets for its colour. */
  colour: string;
  isDashed?: boolean;
}

/** What a chart shows. */
export interface Drawing {
  /** Beginnings of the buckets, in milliseconds. */
  times: number[];
  lines: Line[];
  /** True if the last bucket is not over: its part of each line is dashed. */
  isUnfinished: boolean;
  time: (at: number) => string;
  number: (value: number) => string;
}

/** Where the cursor goes, and what a person drew a span over: places of buckets. */
export interface Hooks {
  cursor: (place: number | undefined) => void;
  zoom: (first: number, last: number) => void;
}

const HEIGHT = 132;
/** Width that a label of time takes, with the room around it, in pixels. */
const LABEL = 96;

/** Splits lines whose last bucket is not over: the whole part, and the last step. */
export function parts({ lines, isUnfinished }: Pick<Drawing, "lines" | "isUnfinished">): Line[] {
  if (!isUnfinished) return lines;
  return lines.flatMap((line) => {
    if (line.isDashed) return [line];
    const last = line.values.length - 1;
    const whole = line.values.map((value, place) => (place === last ? null : value));
    const open = line.values.map((value, place) => (place >= last - 1 ? value : null));
    return [
      { ...line, values: whole },
      { ...line, values: open, isDashed: true },
    ];
  });
}

/** Places of the buckets that have a label, as far apart as labels need. */
export function labelled(count: number, width: number): number[] {
  const step = Math.max(Math.ceil(count / Math.max(Math.floor(width / LABEL), 1)), 1);
  return Array.from({ length: Math.ceil(count / step) }, (_, index) => index * step);
}

/** Draws a chart. `u` is the library, which comes when the first chart does. */
export function draw(u: typeof uPlot, into: HTMLElement, width: number, drawing: Drawing, hooks: Hooks): uPlot {
  const style = getComputedStyle(into);
  // A canvas knows no variables: an element says what they come to.
  const probe = into.appendChild(document.createElement("i"));
  const colour = (name: string) => {
    probe.style.setProperty("color", `var(${name})`);
    return getComputedStyle(probe).color;
  };
  const shown = parts(drawing);
  const data: uPlot.AlignedData = [drawing.times.map((at) => at / 1_000), ...shown.map(({ values }) => values)];
  const isSingle = drawing.times.length === 1;
  const axis = { stroke: colour("--muted"), font: `11px ${style.fontFamily}`, ticks: { show: false }, grid: { stroke: colour("--line"), width: 1 } };
  const plot = new u(
    {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false, setScale: false, dist: 6 } },
      select: { show: true, left: 0, top: 0, width: 0, height: 0 },
      scales: { x: { time: false, range: (_, min, max) => (isSingle ? [data[0]![0]! - 1, data[0]![0]! + 1] : [min, max]) }, y: { range: (_, min, max) => bounds(min, max) } },
      axes: [
        { ...axis, size: 24, grid: { show: false }, splits: () => labelled(drawing.times.length, width - 56).map((place) => drawing.times[place]! / 1_000), values: (_, at) => at.map((one) => drawing.time(one * 1_000)) },
        { ...axis, size: 56, space: 36, values: (_, at) => at.map((one) => drawing.number(one)) },
      ],
      series: [
        {},
        ...shown.map((line): uPlot.Series => ({
          label: line.name,
          stroke: colour(line.colour),
          width: line.isDashed ? 1.5 : 2,
          ...(line.isDashed ? { dash: [4, 4] } : {}),
          spanGaps: false,
          points: { show: isSingle || isSparse(line.values), size: 5 },
        })),
      ],
      hooks: {
        setCursor: [(plot) => hooks.cursor(plot.cursor.left === undefined || plot.cursor.left < 0 || plot.cursor.idx == null ? undefined : plot.cursor.idx)],
        setSelect: [
          (plot) => {
            const { left, width: drawn } = plot.select;
            if (drawn < 6) return;
            const [first, last] = [plot.posToIdx(left), plot.posToIdx(left + drawn)];
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            hooks.zoom(first, last);
          },
        ],
      },
    },
    data,
    into,
  );
  probe.remove();
  return plot;
}

/** True if a value stands alone between gaps, where no line would show it. */
function isSparse(values: (number | null)[]): boolean {
  return values.some((value, place) => value !== null && (values[place - 1] ?? null) === null && (values[place + 1] ?? null) === null);
}

/** The ends of the axis of values: from zero, where values are near it, and with room above. */
export function bounds(min: number | null, max: number | null): [number, number] {
  if (min === null || max === null || !Number.isFinite(min) || !Number.isFinite(max)) return [0, 1];
  const low = min > 0 && min < max * 0.6 ? 0 : min;
  const room = (max - low || Math.abs(max) || 1) * 0.08;
  return [low === 0 ? 0 : low - room, max + room];
}
