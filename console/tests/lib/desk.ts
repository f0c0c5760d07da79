// What two tabs and a folder should come to: a naive model of the screen of files.
//
// Versions are told apart by their texts: no two that the tests write are alike.

/** A text that the browser keeps, typed over a version. */
export interface Kept {
  path: string;
  text: string;
  over: string;
}

/** A file in a tab. */
export interface Open {
  path: string;
  /** The version that was typed over. */
  base: string;
  text: string;
  theirs: string | "gone" | undefined;
  /** What was kept before it was opened, by another tab or an earlier visit, the latest first. */
  offers: Kept[];
  kept: Kept | undefined;
}

export class Tab {
  open = new Map<string, Open>();
  here: string | undefined;
  /** The file whose two texts stand beside each other. */
  comparing: Open | undefined;

  get shown(): Open | undefined {
    return this.here === undefined ? undefined : this.open.get(this.here);
  }
}

export const isUnsaved = (one: Open) => one.text !== one.base;

/** The folder, what the browser keeps, and the tabs. */
export class Desk {
  /** What the browser keeps, the latest last. */
  readonly kept = new Set<Kept>();
  readonly tabs = [new Tab(), new Tab()];
  constructor(readonly disk: Map<string, string>) {}

  /** Each tab looks at the disk. */
  look(): void {
    for (const tab of this.tabs) {
      for (const one of tab.open.values()) {
        const found = this.disk.get(one.path);
        if (found === undefined) one.theirs = "gone";
        else if (found === one.base) one.theirs = undefined;
        else if (!isUnsaved(one) || found === one.text) this.put(one, found, found);
        else one.theirs = found;
        if (tab.comparing === one && (one.theirs === undefined || one.theirs === "gone")) tab.comparing = undefined;
      }
    }
  }

  show(tab: Tab, path: string): void {
    tab.here = path;
    if (!tab.open.has(path)) tab.open.set(path, this.begin(path));
  }
  private begin(path: string): Open {
    const text = this.disk.get(path)!;
    return { path, base: text, text, theirs: undefined, offers: [...this.kept].filter((one) => one.path === path).reverse(), kept: undefined };
  }

  type(one: Open, text: string): void {
    one.text = text;
    this.keep(one);
  }

  /** Saves what is shown; where the disk has another version, both are shown. */
  save(tab: Tab, one: Open): void {
    const found = this.disk.get(one.path);
    if (found === one.base) this.replace(tab, one);
    else if (found !== undefined) tab.comparing = one;
    this.look();
  }
  /** Saves it over what is there. */
  replace(tab: Tab, one: Open): void {
    this.disk.set(one.path, one.text);
    this.put(one, one.text, one.text);
    if (tab.comparing === one) tab.comparing = undefined;
    this.look();
  }
  /** Lets go what was typed. */
  discard(tab: Tab, one: Open): void {
    const to = one.theirs !== undefined && one.theirs !== "gone" ? one.theirs : one.base;
    const { theirs } = one;
    this.put(one, to, to);
    if (theirs === "gone") one.theirs = theirs;
    tab.comparing = undefined;
  }

  /** Shows a text that was kept. */
  restore(one: Open, kept: Kept): void {
    this.kept.delete(kept);
    one.offers = one.offers.filter((offer) => offer !== kept);
    this.overtake(one, kept.text, kept.over);
  }
  private overtake(one: Open, text: string, over: string): void {
    if (over !== one.base && text !== one.base) [one.theirs, one.base] = [one.base, over];
    one.text = text;
    this.keep(one);
  }

  close(tab: Tab, path: string): void {
    const one = tab.open.get(path)!;
    if (isUnsaved(one)) this.keep(one);
    tab.open.delete(path);
    if (tab.comparing === one) tab.comparing = undefined;
    if (tab.here === path) tab.here = [...tab.open.keys()].at(-1);
  }
  /** The tab begins anew with the file that its address names. */
  reload(tab: Tab): void {
    for (const one of tab.open.values()) this.keep(one);
    const { here } = tab;
    [tab.open, tab.comparing] = [new Map(), undefined];
    if (here !== undefined) this.show(tab, here);
  }

  /** A tab gives its file another name; what was typed goes along. */
  rename(tab: Tab, to: string): void {
    const was = tab.shown!;
    this.disk.set(to, this.disk.get(was.path)!);
    this.disk.delete(was.path);
    if (was.kept) this.kept.delete(was.kept);
    tab.open.delete(was.path);
    if (tab.comparing === was) tab.comparing = undefined;
    this.show(tab, to);
    if (isUnsaved(was)) this.overtake(tab.shown!, was.text, was.base);
    this.look();
  }

  private put(one: Open, base: string, text: string): void {
    [one.base, one.text, one.theirs] = [base, text, undefined];
    this.keep(one);
  }
  private keep(one: Open): void {
    if (one.kept) this.kept.delete(one.kept);
    one.kept = isUnsaved(one) ? { path: one.path, text: one.text, over: one.base } : undefined;
    if (one.kept) this.kept.add(one.kept);
  }
}
