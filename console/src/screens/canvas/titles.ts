// What a component is called: by its author, or by what it shows.

import { titleOf } from "../explore/declared";
import type { Look } from "../explore/look.svelte";
import { axisName, type Query } from "../explore/questions";
import { cut, SHOWN, visible } from "../../parts/text";
import type { Component } from "./document";

/** Fields that are named before the rest is counted. */
const FEW = 3;

function listed(names: string[], look: Look | undefined): string {
  const fields = [...(look?.allMeasures ?? []), ...(look?.allDimensions ?? [])];
  const titles = names.map((name) => fields.find((field) => field.name === name)?.title ?? titleOf(name.replace(/_rill_TIME_GRAIN_.*$/, "")));
  return titles.slice(0, FEW).join(", ") + (titles.length > FEW ? ` and ${titles.length - FEW} more` : "");
}

/** The name of a component for people: never empty. */
export function nameOf({ display_name: said, renderer, queries }: Component, look: Look | undefined): string {
  if (said) return visible(cut(said, SHOWN));
  const names = (of: (query: Query) => string[] | undefined) => [...new Set(queries.flatMap((query) => of(query) ?? []))];
  const measures = listed(names((query) => query.measures?.map((one) => (typeof one === "string" ? one : one.name))), look);
  const dimensions = listed(names((query) => query.dimensions?.map(axisName)), look);
  return visible([measures, dimensions].filter(Boolean).join(" by ") || titleOf(renderer) || "A part without a name");
}
