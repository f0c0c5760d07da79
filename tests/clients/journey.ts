// Plays a journey with types that openapi-typescript makes of docs/openapi.json, and follows changes with `eventsource`.
//
// journey.js URL INSTANCE PROJECT: the service, the project's name and folder.

import { readFile, writeFile } from "node:fs/promises";
import { EventSource } from "eventsource";
import type { components, paths } from "./api.js";

type Schemas = components["schemas"];
type Below = "/v1/instances/{instance}";
type Got<Path extends `${Below}${string}` & keyof paths> = paths[Path] extends {
  get: { responses: { 200: { content: { "application/json": infer Document } } } };
}
  ? Document
  : never;

const [url, instance, project] = process.argv.slice(2) as [string, string, string];
const at = `${url}/v1/instances/${instance}`;

function check(holds: boolean, what: unknown): asserts holds {
  if (!holds) throw new Error(JSON.stringify(what));
}

async function read<Document>(path: string, body?: object): Promise<Document> {
  const headers = { "content-type": "application/json", prefer: "wait=60" };
  const response = await fetch(at + path, body && { method: "POST", headers, body: JSON.stringify(body) });
  const document: unknown = await response.json();
  check(response.ok, document);
  return document as Document;
}

/** Waits until the model has a health; returns the token to go on from. */
function follow(from: string, health: Schemas["Health"]): Promise<string> {
  return new Promise((resolve, reject) => {
    const source = new EventSource(`${at}/watch?from=${encodeURIComponent(from)}`);
    const end = (act: () => void) => {
      source.close();
      act();
    };
    const told = (event: MessageEvent<string>) => {
      const { name, health: now } = JSON.parse(event.data) as Pick<Schemas["ResourceDocument"], "name" | "health">;
      if (event.lastEventId) last = event.lastEventId;
      if (name === "best_hours" && now === health) end(() => resolve(last));
    };
    let last = from;
    source.addEventListener("changed", told);
    source.addEventListener("status", told);
    source.addEventListener("lagged", () => end(() => reject(new Error("lagged"))));
  });
}

// List.
let page: Got<"/v1/instances/{instance}/resources"> | undefined;
const listed: Schemas["ResourceDocument"][] = [];
do {
  page = await read<Schemas["Page"]>(`/resources?limit=20${page?.next ? `&page=${page.next}` : ""}`);
  listed.push(...page.resources);
} while (page.next);
check(listed.length > 40 && listed.every((one) => one.health === "ok"), listed);
const { files } = await read<Got<"/v1/instances/{instance}/files">>("/files");
const declared = files.find((file) => file.declares.some((one) => one.name === "best_hours"));
check(declared !== undefined, files);

// Break a model on disk, and follow its failure.
const file = `${project}/${declared.path}`;
const text = await readFile(file, "utf8");
await writeFile(file, text.replace("FROM delays_by_hour", "FROM delays_by_huor"));
const broken = await follow(page.watch, "failed");

// Explain.
const model = "/resources/model/best_hours";
const explained = await read<Got<"/v1/instances/{instance}/resources/{kind}/{name}/explain">>(`${model}/explain`);
const cause = explained.causes[0];
check(cause?.code === "failed" && cause.error?.hint?.includes("delays_by_hour") === true, explained);

// Mend.
await writeFile(file, text);
await follow(broken, "ok");

// Refresh, and wait for the end.
const request = await read<Schemas["RequestDocument"]>(`${model}/refresh`, {});
check(request.state === "done", request);

// Ask a metrics view.
const query: Schemas["MetricsQueryForm"] = { query: { measures: [{ name: "flights" }] } };
const answer = await read<Schemas["MetricsDocument"]>("/metrics/departures/query", query);
check(Number(answer.rows[0]?.[0]) > 0, answer);

// A mistake is a problem with a code.
const wrong = (await (await fetch(`${at}/resources/model/best_huors`)).json()) as Schemas["ProblemDocument"];
check(wrong.code === "unknown-name" && wrong.hint?.includes("best_hours") === true, wrong);
console.log("done");
