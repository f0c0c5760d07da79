// Addresses of files as the language server has them, such as `watershed://shop/models/a.sql`.

const encoded = (part: string) => encodeURIComponent(part).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

/** The address of a project. */
export const rootOf = (instance: string): string => `watershed://${encoded(instance)}/`;

/** The address of a file below that of its project. */
export const addressOf = (root: string, path: string): string => root + path.split("/").map(encoded).join("/");

/** The path of a file; none for what lies elsewhere. */
export function pathOf(root: string, address: string): string | undefined {
  if (!address.startsWith(root)) return undefined;
  try {
    return address.slice(root.length).split("/").map(decodeURIComponent).join("/");
  } catch {
    return undefined;
  }
}
