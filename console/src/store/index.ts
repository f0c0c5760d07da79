export * from "./index.svelte";
