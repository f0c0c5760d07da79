// The board that the parts of the screen stand on.

import { createContext } from "svelte";
import type { Board } from "./board.svelte";

export const [useBoard, setBoard] = createContext<Board>();
