// Draws a chart of an answer with the library of charts.

import type uPlot from "uplot";
import { bounds } from "../explore/chart";
import { visible } from "../../parts/text";
import type { Drawing } from "./drawing";

/** Width that a label takes, with the room around it, in pixels. */
const LABEL = 110;
const LONGEST_LABEL = 16;

/** Draws; `tell` hears what is under the cursor. */
export function draw(u: typeof uPlot, into: HTMLElement, width: number, height: number, drawing: Drawing, tell: (words: string) => void): uPlot {
  const probe = into.appendChild(document.createElement("i"));
  // A canvas knows no variables: an element says what they come to.
  const colour = (name: string) => {
    probe.style.setProperty("color", `var(${name})`);
    return getComputedStyle(probe).color;
  };
  const { kind, x, lines, label } = drawing;
  const axis = { stroke: colour("--muted"), font: `11px ${getComputedStyle(into).fontFamily}`, ticks: { show: false }, grid: { stroke: colour("--line"), width: 1 } };
  const short = (at: number) => {
    const text = visible(label(at)).replaceAll("\n", " ");
    return text.length > LONGEST_LABEL ? `${text.slice(0, LONGEST_LABEL)}…` : text;
  };
  const isBars = kind === "bar" || kind === "histogram";
  const step = Math.max(Math.ceil(x.length / Math.max(Math.floor((width - 72) / LABEL), 1)), 1);
  const places = x.filter((_, place) => place % step === 0);
  const isEven = isBars || label(0.5) === "";
  const room = isBars ? 0.6 : 0;
  const spread = (min: number, max: number): [number, number] => (min === max ? [min - 1, max + 1] : isBars ? [min - room * near(x), max + room * near(x)] : [min, max]);
  const plot = new u(
    {
      width,
      height,
      legend: { show: false },
      cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
      scales: { x: { time: drawing.isTime && !isBars, range: (_, min, max) => (x.length === 0 ? [0, 1] : spread(min, max)) }, y: { range: (_, min, max) => (isBars ? bounds(Math.min(min ?? 0, 0), Math.max(max ?? 0, 0)) : bounds(min, max)) } },
      axes: [
        { ...axis, size: 26, grid: { show: false }, ...(isEven ? { splits: () => places, values: (_: uPlot, at: number[]) => at.map(short) } : drawing.isTime ? { space: LABEL, values: (_: uPlot, at: number[]) => at.map(label) } : {}) },
        { ...axis, size: 72, space: 36, values: (_, at) => at.map((one) => one.toLocaleString(undefined, { maximumSignificantDigits: 5 })) },
      ],
      series: [
        {},
        ...lines.map(({ name }, place): uPlot.Series => {
          const own = colour(`--one-${place}`);
          return {
            label: name,
            stroke: own,
            width: kind === "points" ? 0 : isBars ? 0 : 1.5,
            ...(isBars ? { fill: own, paths: u.paths.bars!({ size: [kind === "histogram" ? 0.98 : 0.8, 60] }) } : {}),
            ...(kind === "points" ? { paths: () => null } : {}),
            points: { show: kind === "points" || (kind === "line" && x.length === 1), size: 5, fill: own },
          };
        }),
      ],
      hooks: {
        setCursor: [
          ({ cursor: { idx, left } }) => {
            const at = idx ?? -1;
            if (left === undefined || left < 0 || x[at] === undefined) return tell("");
            tell([visible(label(x[at])), ...lines.map(({ name, values }) => `${visible(name.slice(0, 60))}: ${values[at]?.toLocaleString(undefined, { maximumFractionDigits: 6 }) ?? "no value"}`)].join(" · "));
          },
        ],
      },
    },
    [x, ...lines.map(({ values }) => values)],
    into,
  );
  probe.remove();
  return plot;
}

/** The least step between places. */
function near(x: number[]): number {
  let least = Infinity;
  for (let place = 1; place < x.length; place++) if (x[place]! > x[place - 1]!) least = Math.min(least, x[place]! - x[place - 1]!);
  return Number.isFinite(least) ? least : 1;
}
