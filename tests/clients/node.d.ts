// What the journey takes from Node.
declare module "node:fs/promises" {
  export function readFile(path: string, encoding: "utf8"): Promise<string>;
  export function writeFile(path: string, text: string): Promise<void>;
}
declare const process: { argv: string[]; exit(code: number): never };
