// One explore, through the eyes of one viewer.

import { problemOf, type Schemas } from "../../api";
import type { Service } from "../../service";
import { Asking } from "./asking";
import { declaredOf, type Field } from "./declared";
import { isClosed, Look } from "./look.svelte";
import { probe } from "./probe";

type Resource = Schemas["ResourceDocument"];

export class Explored extends Look {
  private loading: AbortController | undefined;

  constructor(service: Service, name: string) {
    super(service, "explore", name);
  }

  /** Reads what is declared, and finds out what the viewer may see of it. */
  load = async (): Promise<void> => {
    this.loading?.abort();
    const { signal } = (this.loading = new AbortController());
    [this.problem, this.shared.cursor] = [undefined, undefined];
    try {
      const explore = await this.resource("explore", this.name, signal);
      const view = (explore.result as { metrics_view?: string } | null)?.metrics_view ?? (explore.spec as { metrics_view?: string } | undefined)?.metrics_view;
      if (!view) {
        const { code = "never-built", message = "The explore does not compile.", hint = "Its page has the findings." } = explore.error ?? {};
        this.problem = { type: "", title: code, status: 0, code, detail: message, hint: hint ?? "", retryable: false };
        return;
      }
      const asking = new Asking(this.service, `${this.kind}/${this.name}`, view, this.as, { open: (change) => (this.shared.pending += change) });
      const [of, bounds] = await Promise.all([this.resource("metrics_view", view, signal).catch(() => undefined), asking.bounds(signal)]);
      const declared = declaredOf({ explore, view: of ?? {} }, bounds.time_dimension ?? undefined);
      const columns = await probe(asking, declared, signal);
      if (signal.aborted) return;
      // What the viewer may not see is nowhere on the page.
      const isSeen = ({ name }: Field) => columns.has(name);
      const seen = { ...declared, measures: declared.measures.filter(isSeen), dimensions: declared.dimensions.filter(isSeen) };
      [this.bounds, this.declared, this.columns, this.from] = [bounds, seen, columns, asking];
      this.loaded();
    } catch (error) {
      if (signal.aborted) return;
      this.problem = problemOf(error);
      if (isClosed(this.problem)) this.clear();
    }
  };

  stop = (): void => this.loading?.abort();

  lookAs(email: string | undefined): void {
    this.shared.as = email;
    this.clear();
    void this.load();
  }

  private clear(): void {
    [this.declared, this.from, this.bounds, this.span] = [undefined, undefined, undefined, undefined];
    this.columns = new Map();
  }

  /** A resource with its spec, as whoever is signed in has it: also an admin who looks as somebody, whose fields the answers tell. */
  private async resource(kind: string, name: string, signal: AbortSignal): Promise<Resource> {
    const path = this.service.pathOf({ kind, name });
    try {
      return await this.service.get<Resource>(`${path}?include=spec`, signal);
    } catch (error) {
      if (problemOf(error).status !== 403) throw error;
    }
    return this.service.get<Resource>(path, signal, this.as ? { "watershed-view-as": this.as } : undefined);
  }
}
