// Boards whose content attacks whoever looks at them, and boards too large to be asked for at once.

import { expect, test } from "vitest";
import { FAILED_REQUEST, visit } from "./lib/browser.ts";
import { asked, boardOf, boardDocument, component, readOut } from "./lib/boards.ts";
import { settled } from "./lib/explore.ts";
import { ATTACK, hostile, write } from "./lib/projects.ts";
import { served } from "./lib/served.ts";
import { standIn } from "./lib/stand_in.ts";

/** The hostile project, with a canvas through which its view may be asked. */
function attacked(): string {
  const project = hostile();
  write(project, { "canvases/words.yaml": "type: canvas\nrows:\n  - items:\n      - kpi: {metrics_view: words, measure: n}\n" });
  return project;
}

served("a board that attacks whoever looks at it", attacked, (on) => {
  /** Serves a document in the place of that of the program. */
  const serve = (made: (variables: Record<string, string>) => unknown) =>
    standIn(on.program.port, (asked, answer) => {
      const url = new URL(asked.url ?? "", "http://localhost");
      if (!url.pathname.endsWith("/canvases/words/board")) return false;
      answer.writeHead(200, { "content-type": "application/json" });
      answer.end(JSON.stringify(made(JSON.parse(url.searchParams.get("variables") ?? "{}"))));
      return true;
    });
  const over = { metrics_view: "words" };
  const SAID = `# ${ATTACK}\n\n${ATTACK}\n\n[run](javascript:alert(1)) [run](java&#115;cript:alert(1)) <a href="javascript:alert(1)" onclick="alert(1)">run</a> [there](https://example.org/1 "a&#x202E;b") ![picture](https://example.org/2.png) ![own](data:image/svg+xml;base64,AAAA) &#x202E;turned <svg onload=alert(1)></svg> <iframe src="https://example.org"></iframe> <style>body{display:none}</style> <form action="https://example.org"><input name=a></form> <div style="background: url(https://example.org/3)" id="main">x</div>\n\n\`\`\`\n${ATTACK}\n\`\`\`\n\n| ${ATTACK.replaceAll("|", "")} |\n|---|\n| a |\n`;
  const named = { display_name: ATTACK, subtitle: ATTACK, description: ATTACK };
  const attack = (variables: Record<string, string> = {}) =>
    boardDocument(
      [["prose", "text"], ["kpi", "leaders"], ["table", "pivot"], ["select", "switch", "image", "picture"], ["unknown", "broken", "withheld", "gone"]],
      {
        prose: component("markdown", { content: SAID }, [], named),
        text: component("text", { content: variables.word ?? "" }),
        kpi: component("kpi", { ...over, measure: "n" }, [{ measures: ["n"] }], named),
        leaders: component("leaderboard", over, ["word", "Word"].map((name) => ({ dimensions: [name], measures: ["n"], sort: [{ name: "n", desc: true }], limit: 7 })), named),
        table: component("table", { ...over, columns: [ATTACK, "word"] }, [{ dimensions: ["word", "cell"], measures: ["n"] }], named),
        pivot: component("pivot", over, [{ dimensions: ["word", "kind"], measures: ["n"], pivot_on: ["kind"] }], named),
        select: component("select", { options: [ATTACK, ATTACK, 1, "1", { value: "x", label: ATTACK }] }, [], { ...named, output: { name: "word" } }),
        switch: component("switch", { label: ATTACK }, [], { output: "word" }),
        image: component("image", { url: "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>" }),
        picture: component("image", { url: "javascript:alert(1)" }),
        unknown: component(ATTACK, {}, [], named),
        broken: component("", {}, [], { state: "broken", problem: ATTACK, ...named }),
        withheld: component("", {}, [], { state: "withheld", display_name: ATTACK }),
      },
      {
        display_name: ATTACK,
        banner: ATTACK,
        variables: [{ name: "word", value: variables.word ?? ATTACK }],
        filters: { enable: true, pinned: ["word", ATTACK], required: [] },
        time_ranges: ["P7D", "P7D"].map((range) => ({ range, comparison_offsets: ["-1P", "P7D", "P7D"].map((offset) => ({ offset, range: "" })) })),
        defaults: { time_range: "inf", comparison_mode: ATTACK, comparison_dimension: ATTACK, filters: {} },
        embedded_theme: { light: { primary: "url(https://example.org/x)", "surface-card": "red; background: url(https://example.org/y)", "color-sequential-1": "var(--bg)" }, dark: {} },
      },
    );

  test("is words everywhere, and its links say where they lead", async () => {
    const other = await serve(attack);
    const words = encodeURIComponent(ATTACK);
    const { page, leave } = await visit(boardOf(other.home, "hostile", "words"), { viewport: { width: 1440, height: 4_000 } });
    for (const view of ["", `let.word=${words}&is.word=${words}`, `tab.${words}=${words}&zone=${words}&range=${words}`, "range=P7D&let.gone=x&has.word=x&has.word=x"]) {
      await page.goto(boardOf(other.home, "hostile", "words", view));
      await settled(page);
      expect((await readOut(page)).join()).not.toMatch(/[\u202A-\u202E\u2066-\u2069\u001b]/);
      const made = "main .board :is(img, script, b, iframe, style, object, embed, [onclick], [onerror], [onload], [onmouseover], .prose form, .prose input, #main)";
      expect(await page.locator(made).count()).toBe(0);
      for (const [href, rel, text] of await page.locator("main .prose a").evaluateAll((all) => all.map((link) => [(link as HTMLAnchorElement).href, (link as HTMLAnchorElement).rel, link.textContent]))) {
        expect(href).toMatch(/^https:\/\/example\.org\//);
        expect(rel).toContain("noopener");
        expect(text).toContain("example.org");
      }
    }
    expect(await page.evaluate(() => document.adoptedStyleSheets.map((sheet) => [...sheet.cssRules].map((rule) => rule.cssText).join("")).join(""))).not.toMatch(/url|example/);
    await page.goto(boardOf(other.home, "hostile", "words"));
    await settled(page);
    await page.getByRole("switch").check();
    await settled(page);
    expect(new URL(page.url()).searchParams.get("let.word")).toBe("true");
    await leave(FAILED_REQUEST);
    other.close();
  });

  test("of 500 components asks for those in sight, and for equal ones once", async () => {
    const names = Array.from({ length: 500 }, (_, place) => `c${place}`);
    const kpi = (place: number) => component("kpi", { ...over, measure: "n", sparkline: "none" }, [{ measures: ["n"], where: { cond: { op: "neq", exprs: [{ name: "cell" }, { val: `=${Math.floor(place / 2)}` }] } } }]);
    const other = await serve(() => boardDocument(names.map((name) => [name]), Object.fromEntries(names.map((name, place) => [name, kpi(place)]))));
    const { page, leave } = await visit(`${other.home}ui/hostile`);
    const questions = asked(page);
    let [open, most] = [0, 0];
    const isQuestion = (url: string) => url.endsWith("/query");
    page.on("request", (request) => isQuestion(request.url()) && (most = Math.max(most, ++open)));
    for (const end of ["requestfinished", "requestfailed"] as const) page.on(end as "requestfinished", (request) => isQuestion(request.url()) && (open -= 1));
    await page.goto(boardOf(other.home, "hostile", "words"));
    await settled(page);
    expect(await page.locator("main section.frame").count()).toBe(500);
    const few = questions.length;
    expect(few).toBeGreaterThan(0);
    expect(few).toBeLessThan(12);
    expect(most).toBeLessThanOrEqual(6);
    expect(new Set(questions.map(({ query }) => JSON.stringify(query))).size).toBe(few);
    await page.locator("main section.frame").last().scrollIntoViewIfNeeded();
    await settled(page);
    expect(questions.length).toBeGreaterThan(few);
    expect(questions.length).toBeLessThan(3 * few + 12);
    await leave();
    other.close();
  });

  test("keeps what stays when a switch takes a part away", async () => {
    const given: unknown[] = [];
    const other = await serve((variables: Record<string, unknown>) => {
      given.push(variables);
      const isOn = variables.on !== false;
      const parts = {
        note: component("text", { content: "a part above" }),
        switch: component("switch", {}, [], { output: "on" }),
        // A part whose query was translated names its view there alone.
        table: component("table", {}, [{ metrics_view: "words", dimensions: ["kind"], measures: ["n"] }]),
      };
      return boardDocument([...(isOn ? [["note"]] : []), ["switch"], ["table"]], parts, { variables: [{ name: "on", value: isOn }] });
    });
    const { page, leave } = await visit(boardOf(other.home, "hostile", "words"));
    await page.getByText("a part above").waitFor();
    await page.locator("main table.data tbody tr").first().waitFor();
    given.length = 0;
    await page.getByRole("switch").focus();
    await page.keyboard.press("Space");
    await page.getByText("a part above").waitFor({ state: "detached" });
    await settled(page);
    expect(given).toEqual([{ on: false }]);
    expect(await page.getByRole("switch").evaluate((one) => one === document.activeElement)).toBe(true);
    await leave();
    other.close();
  });

  test("stands but for the parts whose settings are nonsense", async () => {
    const parts = {
      text: component("markdown", { content: { html: "<b>x</b>" } }),
      table: component("table", { ...over, columns: { a: 7 } }, [{ dimensions: ["word"], measures: ["n"] }]),
      kpi: component("kpi", { ...over, measure: [], sparkline: {} }, [{ measures: ["no such measure"] }]),
      grain: component("pivot", over, [{ dimensions: [{ name: "day", grain: "fortnight" }], measures: ["n"] }]),
      select: component("select", { options: { a: 1 }, label: 7 }, [], { output: 7 }),
      image: component("image", { url: [], src: {} }),
      chart: component("line_chart", { ...over, x: 7, y: [] }, [{ dimensions: ["word"], measures: ["n"] }]),
      spec: component("vega_lite", { ...over, spec: "{" }, [{ dimensions: ["word"], measures: ["n"] }]),
      good: component("kpi", { ...over, measure: "n" }, [{ measures: ["n"] }]),
    };
    const nonsense = await serve(() => boardDocument(Object.keys(parts).map((name) => [name]), parts));
    const { page, leave } = await visit(boardOf(nonsense.home, "hostile", "words"), { viewport: { width: 1440, height: 4_000 } });
    await settled(page);
    expect(await page.locator("main section.frame").count()).toBe(Object.keys(parts).length);
    await page.locator("[data-measure=n]").last().getByText("60").waitFor();
    await page.getByText("It sets a variable that the board does not declare.").waitFor();
    await leave(FAILED_REQUEST);
    nonsense.close();
  });
});
