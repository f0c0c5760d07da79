import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      { plugins: [svelte({ configFile: false })], test: { name: "units", include: ["src/**/*.test.ts"] } },
      { test: { name: "bench", include: ["tests/bench.ts"] } },
      { test: { name: "picture", include: ["tests/picture.ts"] } },
      {
        test: {
          name: "journeys",
          include: ["tests/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 90_000,
          // As long as a page waits: machines that tests share stall for seconds.
          expect: { poll: { timeout: 30_000 } },
          // One after the other: each file has a program and a browser, and machines of CI have two cores.
          fileParallelism: false,
        },
      },
    ],
  },
});
