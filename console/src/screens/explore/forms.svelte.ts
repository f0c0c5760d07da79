// Forms of files that the service makes of answers.

import { SvelteSet } from "svelte/reactivity";
import type { Form } from "./taking";

/** The forms that it was found not to make. */
export const missing = new SvelteSet<Form>();
