// What every part of a page stands in: the project, what is known of it, and what may be asked of it.

import { createContext } from "svelte";
import type { Schemas } from "../api";
import type { Service } from "../service";
import type { Store } from "../store";
import type { Actions } from "./actions.svelte";

/** The project that a page is about. */
export interface Project {
  service: Service;
  store: Store;
  actions: Actions;
  /** True if the one who looks has a role. What he may not do isn't offered. */
  may(role: Schemas["Role"]): boolean;
}

export const [useProject, setProject, hasProject] = createContext<Project>();
