// Pictures that a page shows: those that stand in the text of their address, made of points.

/** The longest address of a picture. */
const LONGEST = 1 << 20;

/** Returns the address of a picture that may be shown; none for any other place, and for drawings, which may hold more than a picture. */
export function pictureOf(address: unknown): string | undefined {
  if (typeof address !== "string" || address.length > LONGEST) return undefined;
  return /^data:image\/(png|jpe?g|gif|webp|avif)(;base64)?,[A-Za-z0-9+/=%_.~-]*$/.test(address) ? address : undefined;
}
