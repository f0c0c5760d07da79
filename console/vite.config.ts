import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";

/** Writes smaller forms beside each file, for browsers that read them: nobody compresses while the service runs. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    closeBundle() {
      const folder = join(import.meta.dirname, "dist/assets");
      for (const name of readdirSync(folder)) {
        const path = join(folder, name);
        const content = readFileSync(path);
        writeFileSync(`${path}.br`, brotliCompressSync(content));
        writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
      }
    },
  };
}

/** Lets the first questions of a page go out before the rest of its scripts is there: their script waits for nothing. */
function early(): Plugin {
  return {
    name: "early",
    apply: "build",
    transformIndexHtml: {
      order: "post",
      handler(page, { bundle }) {
        const chunk = Object.values(bundle ?? {}).find((one) => one.type === "chunk" && one.isEntry && one.name === "begun");
        // Behind the element that says where the service stands, before all other scripts.
        return page.replace("<script ", `<script type="module" async fetchpriority="high" crossorigin src="./${chunk!.fileName}"></script>\n    <script `);
      },
    },
  };
}

// While somebody develops, all but the pages comes from a program that runs.
const program = process.env.WATERSHED ?? "http://127.0.0.1:7437";
const proxy = Object.fromEntries(["/v1", "/problems", "/openapi.json"].map((path) => [path, { target: program }]));

/** Parts of Vega that no chart of Vega-Lite here needs: maps, forces, trees, clouds of words. They would be a tenth of it. */
const UNUSED = ["vega-geo", "vega-force", "vega-hierarchy", "vega-wordcloud", "vega-crossfilter", "vega-label"];
const nothing = join(import.meta.dirname, "src/screens/canvas/charts/nothing.ts");

export default defineConfig({
  plugins: [svelte(), compressed(), early()],
  // The service says below which path it stands.
  base: "./",
  // No file becomes an address of its own content: the policy of the page refuses those of scripts.
  build: { modulePreload: { polyfill: false }, assetsInlineLimit: 0, target: "es2023", rolldownOptions: { input: ["index.html", "src/begun.ts"] } },
  resolve: { alias: Object.fromEntries(UNUSED.map((name) => [name, nothing])) },
  worker: { format: "es" },
  server: { proxy },
});
