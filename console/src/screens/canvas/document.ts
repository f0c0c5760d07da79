// A board as the service answers it: `GET canvases/NAME/board`, with the parts that its description leaves open.

import type { Schemas } from "../../api";
import type { Query } from "../explore/questions";

type Told = Schemas["BoardDocument"];

/** A query of a component, with the view that it asks. */
export interface Asked extends Query {
  metrics_view: string;
}

export type Component = Omit<Schemas["BoardComponent"], "queries"> & { queries: Asked[] };
/** A component in its place. A width of 0 is not said. */
export type Item = Schemas["BoardItem"];
/** A row of items, or a group of tabs. A height of 0 is not said. */
export type Row = Schemas["BoardRow"];
export type Tab = Schemas["BoardTab"];
export type Variable = Schemas["BoardVariable"];

interface Described {
  name: string;
  display_name: string;
  description: string;
}

/** A metrics view, with the fields that the viewer may see. */
export interface ViewOf {
  display_name: string;
  description: string;
  timeseries: string;
  smallest_time_grain: string;
  dimensions: Described[];
  measures: (Described & { format_preset: string; format_d3: string; valid_percent_of_total: boolean })[];
}

export type BoardDocument = Omit<Told, "components" | "defaults" | "time_ranges" | "views"> & {
  components: Record<string, Component>;
  defaults: { time_range: string; comparison_mode: string; comparison_dimension: string; filters: Record<string, string> } | null;
  time_ranges: { range: string; comparison_offsets: { offset: string; range: string }[] }[];
  views: Record<string, ViewOf>;
};
