// Groups of tests, each with a program that serves a project of its own.

import { afterAll, beforeAll, describe } from "vitest";
import { closeBrowser } from "./browser.ts";
import { canRun } from "./needs.ts";
import { Program } from "./program.ts";

/** The program of a group, which is there once its tests begin. */
export interface Served {
  program: Program;
}

/** Declares tests on a project that was built as far as it can be, or on one that has just begun. */
export function served(name: string, project: () => string, tests: (on: Served) => void, isBuilt = true) {
  describe.runIf(canRun)(name, () => {
    const on = {} as Served;
    beforeAll(async () => {
      on.program = await Program.start(project());
      if (isBuilt) await on.program.settle().catch(() => {});
    });
    afterAll(async () => {
      await on.program?.stop();
      await closeBrowser();
    });
    tests(on);
  });
}
