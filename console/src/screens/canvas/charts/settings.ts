// The settings of one channel of a chart (`x`, `y`, `color` ...), which all kinds of charts have in common.

export type Loose = Record<string, unknown>;
export const block = (value: unknown): Loose => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Loose) : {});
const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);
const number = (value: unknown): number | undefined => {
  const read = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof read === "number" && Number.isFinite(read) ? read : undefined;
};
const truth = (value: unknown): boolean | undefined => (typeof value === "boolean" ? value : undefined);

/** Names that stand for all measures of a chart, in the place of a field. */
const MEASURES = new Set(["rill_measures", "measures", "value"]);
const ORIENTATIONS = ["top", "bottom", "left", "right", "none"] as const;
export type Orientation = (typeof ORIENTATIONS)[number];

/** A channel as its author set it. */
export interface Channel {
  /** Names of fields, without those that stand for all measures. */
  fields: string[];
  /** True if it stands for all measures. */
  isMeasures: boolean;
  sort: string | unknown[] | undefined;
  limit: number | undefined;
  title: string | undefined;
  isTitled: boolean;
  angle: number | undefined;
  isFromZero: boolean | undefined;
  min: number | undefined;
  max: number | undefined;
  /** False if values that are missing are left out. */
  showsMissing: boolean;
  mark: "bar" | "line" | undefined;
  legend: Orientation | undefined;
  showsTotal: boolean;
  /** Colours by value, as written. */
  mapping: { value: unknown; colour: string }[];
  range: { scheme: string | undefined; start: string | undefined; end: string | undefined };
  /** A colour, or the word of one, where no field gives it. */
  fixed: string | undefined;
}

/** Reads a channel; a text is a fixed colour for `color`, and the name of a field elsewhere. */
export function channel(properties: Loose, key: string): Channel {
  const value = properties[key];
  const said = typeof value === "string" ? (key === "color" ? {} : { field: value }) : block(value);
  const listed = [said.field, ...(Array.isArray(said.fields) ? said.fields : [])];
  const names = [...new Set(listed.filter((one): one is string => typeof one === "string" && one !== ""))];
  const sort = said.sort;
  const range = block(said.colorRange);
  return {
    fields: names.filter((name) => !MEASURES.has(name)),
    isMeasures: names.some((name) => MEASURES.has(name)),
    sort: Array.isArray(sort) ? sort : text(sort),
    limit: ((limit) => (limit !== undefined && limit >= 1 ? Math.floor(limit) : undefined))(number(said.limit)),
    title: text(said.title),
    isTitled: said.showAxisTitle !== false,
    angle: ((angle) => (angle === undefined ? undefined : angle % 360))(number(said.labelAngle)),
    isFromZero: truth(said.zeroBasedOrigin),
    min: number(said.min),
    max: number(said.max),
    showsMissing: said.showNull !== false,
    mark: said.mark === "bar" || said.mark === "line" ? said.mark : undefined,
    legend: ORIENTATIONS.find((one) => one === said.legendOrientation),
    showsTotal: said.showTotal === true,
    mapping: (Array.isArray(said.colorMapping) ? said.colorMapping : []).flatMap((one) => {
      const { value: of, color } = block(one);
      return typeof color === "string" ? [{ value: of, colour: color }] : [];
    }),
    range: { scheme: text(range.scheme), start: text(range.start), end: text(range.end) },
    fixed: key === "color" ? text(value) : undefined,
  };
}
