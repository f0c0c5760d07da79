// What these tests need of a machine. Where something is missing one line says so; where servers are required it is an error.

import { browserProgram } from "./browser.ts";
import { lacksProgram } from "./program.ts";

const lacks = browserProgram() ? lacksProgram() : "there is no Chromium (Debian: `apt-get install chromium`)";

/** True if these tests can be run here. */
export const canRun = needs(lacks);

/** Says what is missing; fails where everything has to be there. */
export function needs(lacks: string | undefined): boolean {
  if (lacks === undefined) return true;
  if (process.env.WATERSHED_REQUIRE_SERVERS === "1") throw new Error(`the tests of the console can't be run: ${lacks}`);
  console.log(`skipped: ${lacks}`);
  return false;
}
