// What a person does to save: one text, all of them, or one of two versions. No version is replaced that nobody has looked at.

import { count } from "../../parts/words";
import type { Desk } from "./desk.svelte";
import type { Opened } from "./opened.svelte";

export class Saving {
  /** True while both texts of a file stand beside each other. */
  isComparing = $state(false);
  /** True while a person is asked whether all are to be saved. */
  isAsking = $state(false);
  /** What came of it, where nothing else says so. */
  told = $state("");

  constructor(private readonly desk: Desk) {}

  async save(opened: Opened): Promise<void> {
    this.told = "";
    if (!opened.isUnsaved) return void (this.told = "There is nothing to save.");
    const compare = () => (this.isComparing = opened.theirs !== "gone");
    if (opened.theirs !== undefined) return void compare();
    if (!(await this.desk.save(opened)) && opened.theirs !== undefined) compare();
  }

  /** Saves all but those that went on elsewhere too. */
  async saveAll(): Promise<void> {
    for (const one of this.desk.unsaved) if (one.theirs === undefined) await this.desk.save(one);
    const left = this.desk.unsaved.length;
    this.told = left > 0 ? `${count(left, "file")} could not be saved: the dots say which.` : "";
  }

  /** Saves over a version that a person has seen. */
  async settle(opened: Opened, over: Opened["theirs"], text?: string): Promise<void> {
    if (over === undefined) return;
    if (text !== undefined && text !== opened.text) opened.put(text);
    if (await this.desk.save(opened, over)) this.isComparing = false;
  }

  /** Asks before all are saved; there has to be something. */
  ask = (): void => {
    this.isAsking = this.desk.unsaved.length > 0;
  };
}
