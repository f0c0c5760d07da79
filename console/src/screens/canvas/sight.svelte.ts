// What is seen of one view on a board: the time and the filters of the board, as far as the view has their fields.

import type { Service } from "../../service";
import { visible } from "../../parts/text";
import type { Filter } from "../explore/address";
import type { Asking, Told } from "../explore/asking";
import type { Declared } from "../explore/declared";
import type { Column } from "../explore/format";
import { span } from "../explore/format/time";
import { Look, type Own, type Source } from "../explore/look.svelte";
import { probe } from "../explore/probe";
import type { Query } from "../explore/questions";
import type { Board } from "./board.svelte";

export class Sight extends Look {
  /** Names of fields whose types were asked for. */
  private tried = $state.raw(new Set<string>());
  /** Fields that filters name and whose types are not known yet. */
  private untyped = $derived.by(() => this.allDimensions.filter(({ name, type }) => type === "" && !this.tried.has(name) && this.view.filters.some(({ field }) => field === name)));
  private typing: AbortController | undefined;

  constructor(
    service: Service,
    private readonly board: Board,
    readonly metricsView: string,
    /** The time of one component, where that has its own. */
    private readonly apart: Own | undefined = undefined,
  ) {
    super(service, "canvas", board.name, board.shared);
  }

  load = (): Promise<void> => this.board.load();
  lookAs(email: string | undefined): void {
    this.board.lookAs(email);
  }

  stop = (): void => this.typing?.abort();

  /** Takes what a document says of the view. */
  take(declared: Declared, asking: Asking): void {
    this.typing?.abort();
    const kept = this.columns;
    const column = (role: Column["role"]) => ({ name, title }: { name: string; title: string }): [string, Column] => [name, { ...{ type: kept.get(name)?.type ?? "" }, name, display_name: title, role }];
    this.columns = new Map([...declared.dimensions.map(column("dimension")), ...declared.measures.map(column("measure"))]);
    if (declared.time) this.columns.set(declared.time, column("dimension")({ name: declared.time, title: declared.time })[1]);
    [this.declared, this.from] = [declared, asking];
    void this.type();
  }

  /** Finds out the types of fields that the address names: a number is compared as one. */
  async type(): Promise<void> {
    const { from, untyped: dimensions } = this;
    if (!from || dimensions.length === 0) return;
    this.typing?.abort();
    const { signal } = (this.typing = new AbortController());
    const found = await probe(from, { dimensions, measures: [], time: undefined }, signal).catch(() => new Map<string, Column>());
    if (signal.aborted) return;
    this.learn([...found.values()]);
    this.tried = new Set([...this.tried, ...dimensions.map(({ name }) => name)]);
  }

  /** Takes note of the types that an answer has. */
  private learn(columns: Column[]): void {
    const news = columns.filter(({ name, role, type }) => role === "dimension" && type !== "" && this.columns.get(name)?.type === "");
    if (news.length > 0) this.columns = new Map([...this.columns, ...news.map(({ name, type }) => [name, { ...this.columns.get(name)!, type }] as const)]);
  }

  /** Takes note of what an answer tells of all others. */
  heard({ answer }: Told, query: Query): void {
    this.learn(answer.columns);
    // A query may have a time of its own.
    if (query.time_range !== this.range) return;
    this.resolve(answer, query);
    if (this.board.first === this.from && !this.apart) this.board.say(answer, query, this.columns.get(this.time ?? ""));
  }

  get own(): Own | undefined {
    return this.apart;
  }
  /** What a component's own time came to, and what it is compared with; none while that is not known. */
  ownRange = $derived.by(() => {
    if (!this.apart?.range || !this.span || this.span.of !== `${this.range}${this.zone}`) return undefined;
    const said = this.compared && `, compared with ${span(this.compared, this.zone)}`;
    const clock = this.apart.zone ? ` (${this.zone})` : "";
    return `${span(this.span.range, this.zone)}${clock}, its own range${said ?? ""}`;
  });

  /** What the range of the board comes to in this view, where that is another time than the bar above says. */
  ownTime = $derived.by(() => {
    const [own, said] = [this.span && span(this.span.range, this.zone), this.board.span && span(this.board.span.range, this.board.zone)];
    return own !== said && this.span?.of === this.board.span?.of ? own : undefined;
  });

  get asking(): Asking | undefined {
    return this.board.missing.length > 0 || this.untyped.length > 0 ? undefined : this.from;
  }
  /** Where values of fields come from: also while the board waits for one to be chosen. */
  get values(): Source {
    return { asking: this.from, frame: this.frame, allMeasures: this.allMeasures };
  }
  get mayFilter(): boolean {
    return this.board.mayFilter;
  }
  get begun(): string {
    return this.board.begunIn(this.metricsView);
  }

  /** Names of what does not narrow what is asked of this view. */
  deaf = $derived.by((): string[] => {
    const titleOf = ({ field }: Filter) => this.board.allDimensions.find(({ name }) => name === field)?.title ?? visible(field);
    const nobodys = new Set(this.board.idle.map((one) => JSON.stringify(one)));
    const idle = this.mayFilter ? this.idle.filter((one) => !nobodys.has(JSON.stringify(one))) : [];
    return [...new Set(idle.map(titleOf)), ...(this.time || !this.board.time ? [] : ["time"])];
  });
}
