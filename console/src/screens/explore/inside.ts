// Menus stay where they can be seen: what would stand beyond an edge of the page is moved.

/** Room between a menu and the edge, in pixels. */
const ROOM = 8;

/** Returns by how much what lies from `left` to `right` has to move to lie between two edges; its beginning counts more than its end. */
export function moved({ left, right }: { left: number; right: number }, from: number, to: number): number {
  const back = Math.min(to - ROOM - right, 0);
  return Math.max(from + ROOM - left, back);
}

/** Keeps the content of a menu inside of the page each time it is opened. */
export function inside(menu: HTMLDetailsElement): () => void {
  const place = () => {
    const panel = menu.querySelector<HTMLElement>(":scope > :not(summary)");
    if (!panel || !menu.open) return;
    panel.style.removeProperty("translate");
    const [own, page] = [panel.getBoundingClientRect(), (menu.closest("main") ?? document.documentElement).getBoundingClientRect()];
    const by = moved(own, Math.max(page.left, 0), Math.min(page.right, document.documentElement.clientWidth));
    if (by !== 0) panel.style.setProperty("translate", `${Math.round(by)}px`);
  };
  menu.addEventListener("toggle", place);
  addEventListener("resize", place);
  return () => {
    menu.removeEventListener("toggle", place);
    removeEventListener("resize", place);
  };
}
