// What a board's document declares of one of its views, or of itself, as the screen of explores knows it.

import { declaredOf, type Declared } from "../explore/declared";
import type { BoardDocument, ViewOf } from "./document";

/** Returns what a document declares of a view; of the board as a whole without one. */
export function declaredBy(document: BoardDocument, name: string, view: ViewOf | undefined): Declared {
  const names = (fields: { name: string }[] | undefined) => fields?.map((field) => field.name) ?? [];
  const spec = { ...document, metrics_view: name, dimensions: names(view?.dimensions), measures: names(view?.measures) };
  return declaredOf({ explore: { name: document.name, spec }, view: { spec: view } }, view?.timeseries || undefined);
}
