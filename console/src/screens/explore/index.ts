// The screen that is loaded when somebody explores.
export { default as Explore } from "./Explore.svelte";
export { default as Explores } from "./Explores.svelte";
