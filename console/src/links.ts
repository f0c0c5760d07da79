import { place } from "./router";
type Name = { kind: string; name: string };
export const homePage = () => place.href([place.instance]);
/** The screens of a project beside that of all resources, by their word in the address. */
export const SCREENS = { activity: "Activity", programs: "Programs", trash: "Trash" } as const;
export type Screen = keyof typeof SCREENS;
export const screenPage = (screen: Screen) => place.href([place.instance, screen]);
/** The explores of a project, and one of them. */
export const EXPLORES = "explores";
export const explorePage = (name?: string) => place.href([place.instance, EXPLORES, ...(name === undefined ? [] : [name])]);
/** The boards of a project, and one of them. */
export const CANVASES = "canvases";
export const canvasPage = (name?: string) => place.href([place.instance, CANVASES, ...(name === undefined ? [] : [name])]);
/** The page of questions in SQL, with one filled in. */
export const SQL = "sql";
export const sqlPage = (question?: string) => place.href([place.instance, SQL]) + (question === undefined ? "" : `#q=${encodeURIComponent(question)}`);
/** The page of files, with one opened, at a line. */
export const FILES = "files";
export const filesPage = (path?: string, line?: number, column?: number) =>
  place.href([place.instance, FILES, ...(path === undefined ? [] : path.split("/"))]) + (line ? `?line=${line}${column ? `&column=${column}` : ""}` : "");
export const resourcePage = ({ kind, name }: Name) => place.href([place.instance, kind, name]);
export const fileLine = (of: Name, path: string, line?: number) => `${resourcePage(of)}?file=${encodeURIComponent(path)}${line ? `&line=${line}` : ""}`;
export const codePage = (code: string) => `${place.base}/problems/${encodeURIComponent(code)}`;
