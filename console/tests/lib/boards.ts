// Steps on the page of a board, and documents of boards that a service might send.

import type { Page } from "playwright-core";

/** The address of a board. */
export const boardOf = (home: string, project: string, name: string, words = "") => `${home}ui/${project}/canvases/${name}${words ? `?${words}` : ""}`;

/** A component of a board, by its name. */
export const part = (page: Page, name: string | RegExp) => page.getByRole("region", { name, exact: true });

/** The questions that a page asks: those that find out what may be asked are none. */
export function asked(page: Page): { view: string; query: any; where: string | undefined; limit: number }[] {
  const all: { view: string; query: any; where: string | undefined; limit: number }[] = [];
  page.on("request", (request) => {
    const view = /metrics\/([^/]+)\/query$/.exec(request.url())?.[1];
    if (!view || request.method() !== "POST") return;
    const { query, where, limit } = request.postDataJSON();
    if (JSON.stringify(query.where) !== '{"val":false}') all.push({ view: decodeURIComponent(view), query, where, limit });
  });
  return all;
}

/** What stands in each component, in the order in which a page is read out. */
export function readOut(page: Page): Promise<string[]> {
  return page.locator("main section.frame").evaluateAll((all) => all.map((one) => `${one.getAttribute("aria-label")}: ${(one as HTMLElement).innerText.replace(/\s+/g, " ").trim()}`));
}

/** A component of a document. */
export function component(renderer: string, properties: Record<string, unknown>, queries: Record<string, unknown>[] = [], more: Record<string, unknown> = {}) {
  const view = typeof properties.metrics_view === "string" ? properties.metrics_view : "";
  return { state: "shown", problem: null, display_name: "", description: "", subtitle: "", renderer, properties, metrics_view: view, queries: queries.map((query) => ({ metrics_view: view, ...query })), input: [], output: null, ...more };
}

/** A document over the hostile project's view `words`. */
export function boardDocument(rows: string[][], components: Record<string, unknown>, more: Record<string, unknown> = {}) {
  const field = (name: string) => ({ name, display_name: "", description: "" });
  return {
    schema: "watershed.board/1",
    name: "words",
    display_name: "",
    banner: "",
    max_width: 0,
    gap_x: 0,
    gap_y: 0,
    theme: "",
    embedded_theme: null,
    allow_custom_time_range: true,
    time_ranges: [],
    time_zones: [],
    filters: { enable: true, pinned: [], required: [] },
    defaults: null,
    variables: [],
    rows: rows.map((items) => ({ height: 0, items: items.map((component) => ({ width: 0, component })), name: "", tabs: [] })),
    components,
    views: {
      words: {
        ...field(""),
        timeseries: "day",
        smallest_time_grain: "",
        first_day_of_week: 1,
        first_month_of_year: 1,
        dimensions: ["word", "cell", "kind"].map(field),
        measures: [{ ...field("n"), format_preset: "", format_d3: "", valid_percent_of_total: true }],
      },
    },
    ...more,
  };
}

/** What a component of a board comes to. */
export interface Seen {
  name: string;
  /** What is drawn: a chart, a table, figures, a picture, something to choose, or a text. */
  draws: string[];
  /** What it says in its own words: why something is not drawn, or what is left out. */
  says: string[];
}

/** Reads what each component draws, and what it says beside. */
export function framesOf(page: Page): Promise<Seen[]> {
  return page.locator("main section.frame").evaluateAll((all) =>
    all.map((one) => {
      const sorts = { chart: ".chart:not([hidden]) canvas", table: "table tbody tr", figure: "[data-measure]", picture: "img", choice: "select, [role=switch]", text: ".prose" };
      return {
        name: one.getAttribute("aria-label") ?? "",
        draws: Object.entries(sorts).flatMap(([sort, selector]) => (one.querySelector(selector) ? [sort] : [])),
        says: [...one.querySelectorAll("p, .problem")].map((text) => (text as HTMLElement).innerText.replace(/\s+/g, " ").trim()).filter(Boolean),
      };
    }),
  );
}
