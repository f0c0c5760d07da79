// Stands for parts of Vega that charts here don't need (`vite.config.ts`).
export {};
