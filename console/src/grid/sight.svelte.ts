// What is in sight of a long list, along one axis: nothing else is drawn.

import { elementScroll, observeElementOffset, observeElementRect, Virtualizer, type VirtualItem } from "@tanstack/virtual-core";

interface Options {
  isHorizontal: boolean;
  overscan: number;
  /** Room before the first one, that what stands fast covers; and behind the last one. */
  before: () => number;
  after: () => number;
  sizeOf: (place: number) => number;
}

/** The part of a list that is in sight. */
export class Sight {
  items = $state.raw<VirtualItem[]>([]);
  total = $state(0);
  private readonly inner: Virtualizer<HTMLElement, HTMLElement>;
  private count = 0;
  private frame: HTMLElement | null = null;

  constructor(private readonly options: Options) {
    this.inner = new Virtualizer<HTMLElement, HTMLElement>(this.wanted());
  }

  private wanted() {
    const { isHorizontal, overscan, before, after, sizeOf } = this.options;
    return {
      count: this.count,
      horizontal: isHorizontal,
      overscan,
      estimateSize: sizeOf,
      paddingStart: isHorizontal ? before() : 0,
      scrollPaddingStart: isHorizontal ? before() : 0,
      scrollPaddingEnd: after(),
      getScrollElement: () => this.frame,
      scrollToFn: elementScroll,
      observeElementRect,
      observeElementOffset,
      onChange: this.look,
    };
  }

  private look = () => {
    this.items = this.inner.getVirtualItems();
    this.total = this.inner.getTotalSize();
  };

  /** Follows a frame that scrolls; returns what ends that. */
  follow(frame: HTMLElement): () => void {
    this.frame = frame;
    const leave = this.inner._didMount();
    this.inner._willUpdate();
    this.look();
    return () => {
      leave();
      this.frame = null;
    };
  }

  /** Takes another number of entries, or other sizes of them. */
  update(count: number, areOthers: boolean): void {
    this.count = count;
    this.inner.setOptions(this.wanted());
    this.inner._willUpdate();
    if (areOthers) this.inner.measure();
    this.look();
  }

  /** Brings an entry into sight. */
  show(place: number, align: "auto" | "start" = "auto"): void {
    this.inner.scrollToIndex(place, { align });
  }

  /** The entries that fit into the frame. */
  get page(): number {
    const { scrollRect } = this.inner;
    const length = this.options.isHorizontal ? scrollRect?.width : scrollRect?.height;
    return Math.max(Math.floor(((length ?? 0) - this.options.after()) / Math.max(this.options.sizeOf(0), 1)), 1);
  }
}
