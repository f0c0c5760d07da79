// What a person does to save: one text, all of them, or one of two versions. No version is replaced that nobody has looked at.

import { count } from "../../parts/words";
import type { Desk } from "./desk.svelte";
import type { Opened, Version } from "./opened.svelte";

export class Saving {
  /** The file whose two texts stand beside each other. */
  private comparing = $state.raw<Opened>();
  /** True while a person is asked whether all are to be saved. */
  isAsking = $state(false);
  /** What came of it, where nothing else says so. */
  told = $state("");

  constructor(private readonly desk: Desk) {}

  async save(opened: Opened): Promise<void> {
    this.told = "";
    if (!opened.isUnsaved) return void (this.told = "There is nothing to save.");
    if (opened.theirs !== undefined) return this.compare(opened);
    if (!(await this.desk.save(opened)) && opened.theirs !== undefined) this.compare(opened);
  }

  /** Shows both texts of a file until a person has decided; of one that is gone there is one text. */
  compare(opened: Opened): void {
    if (opened.theirs !== "gone") this.comparing = opened;
  }
  /** Goes back to the text. */
  leave = (): void => {
    this.comparing = undefined;
  };
  /** The other text of a file, where both are to be shown. */
  otherOf(opened: Opened): Version | undefined {
    return this.comparing === opened && opened.theirs !== "gone" ? opened.theirs : undefined;
  }

  /** Saves all but those that went on elsewhere too. */
  async saveAll(): Promise<void> {
    for (const one of this.desk.unsaved) if (one.theirs === undefined) await this.desk.save(one);
    const left = this.desk.unsaved.length;
    this.told = left > 0 ? `${count(left, "file")} could not be saved: the dots say which.` : "";
  }

  /** Saves over a version that a person has seen. */
  async settle(opened: Opened, over: Opened["theirs"]): Promise<void> {
    if (over === undefined) return;
    if (await this.desk.save(opened, over)) this.leave();
  }

  /** Asks before all are saved; there has to be something. */
  ask = (): void => {
    this.isAsking = this.desk.unsaved.length > 0;
  };
}
