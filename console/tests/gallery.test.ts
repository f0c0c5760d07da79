// The gallery on the real program: each of its parts draws, or says in words why it does not.

import { expect, test } from "vitest";
import { picture, visit } from "./lib/browser.ts";
import { boardOf, framesOf } from "./lib/boards.ts";
import { settled } from "./lib/explore.ts";
import { copied } from "./lib/projects.ts";
import { served } from "./lib/served.ts";

const BOARDS = ["figures", "charts", "own", "choices", "narrowed", "fixed"];

served("the gallery", () => copied("gallery"), (on) => {
  test.each(BOARDS)("%s", async (name) => {
    const { page, leave } = await visit(boardOf(on.program.home, "gallery", name, name === "narrowed" ? "is.shop=Market" : ""), { viewport: { width: 1440, height: 6_000 } });
    await settled(page);
    console.log(name, JSON.stringify(await framesOf(page), null, 1));
    await picture(page, `gallery ${name}`);
    await leave();
  });
});
