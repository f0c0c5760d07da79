// A board as the service answers it: `GET canvases/NAME/board`.

import type { Query } from "../explore/questions";

/** A query of a component, with the view that it asks. */
export interface Asked extends Query {
  metrics_view: string;
}

export interface Component {
  state: "shown" | "withheld" | "broken";
  /** The reason why it can't be drawn. */
  problem: string | null;
  display_name: string;
  description: string;
  subtitle: string;
  renderer: string;
  properties: Record<string, unknown>;
  metrics_view: string;
  queries: Asked[];
  input: unknown[];
  output: unknown;
}

/** A component in its place. A width of 0 is not said. */
export interface Item {
  width: number;
  component: string;
}

/** A row of items, or a group of tabs. A height of 0 is not said. */
export interface Row {
  height: number;
  items: Item[];
  name: string;
  tabs: Tab[];
}

export interface Tab {
  name: string;
  label: string;
  rows: Row[];
}

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

export interface Variable {
  name: string;
  value: unknown;
}

export interface BoardDocument {
  schema: string;
  name: string;
  display_name: string;
  banner: string;
  max_width: number;
  gap_x: number;
  gap_y: number;
  theme: string;
  embedded_theme: unknown;
  allow_custom_time_range: boolean;
  time_ranges: { range: string; comparison_offsets: { offset: string; range: string }[] }[];
  time_zones: string[];
  filters: { enable: boolean; pinned: string[]; required: string[] };
  defaults: { time_range: string; comparison_mode: string; comparison_dimension: string; filters: Record<string, string> } | null;
  variables: Variable[];
  rows: Row[];
  components: Record<string, Component>;
  views: Record<string, ViewOf>;
}
