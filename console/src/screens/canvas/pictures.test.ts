import { expect, test } from "vitest";
import { pictureOf } from "./pictures";

test("pictures stand in their address, and are made of points", () => {
  expect(pictureOf("data:image/png;base64,iVBORw0KGgo=")).toBeDefined();
  for (const address of ["https://example.org/a.png", "//example.org/a.png", "a.png", "data:image/svg+xml,<svg onload=alert(1)>", "data:image/svg+xml;base64,AAAA", "data:text/html,x", "javascript:alert(1)", "data:image/png;base64,x\" onerror=\"alert(1)", 7, null]) {
    expect(pictureOf(address), String(address)).toBeUndefined();
  }
});
