// An answer as a file: it is streamed into the browser's own folder, and handed on once it is whole. Half a file is none.

import { made, problemOf, Refused, type ProblemDocument } from "../api";
import { save } from "../parts/save";
import { Harmless } from "./sheets";

/** Forms of files, by their endings. */
export const FORMS = {
  csv: "text/csv",
  json: "application/json",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  parquet: "application/vnd.apache.parquet",
} as const;
export type Form = keyof typeof FORMS;

/** A source of the same answer in any form. */
export type AskForm = (accept: string, signal: AbortSignal) => Promise<Response>;

const FOLDER = "watershed-exports";
/** How long a file is kept for the browser to copy it, in milliseconds. */
const KEPT = 3_600_000;
/** Bytes at the end of a document in which an error would stand. */
const END = 64 << 10;

/** Makes a file and saves it. Returns its size; throws the reason why there is none. `told` hears how much there is. */
export async function exported(ask: AskForm, form: Form, name: string, told: (bytes: number) => void, signal: AbortSignal): Promise<number> {
  const answer = await ask(FORMS[form], signal);
  if (!answer.body) throw new Refused(made("unreadable-answer", "The answer has no content.", "Try again."));
  let stream: ReadableStream<Uint8Array<ArrayBuffer>> = answer.body;
  if (form === "csv") stream = stream.pipeThrough(new TextDecoderStream()).pipeThrough(harmless()).pipeThrough(new TextEncoderStream());
  if (form === "json") stream = stream.pipeThrough(whole());
  let size = 0;
  stream = stream.pipeThrough(
    new TransformStream({
      transform(piece, out) {
        size += piece.length;
        told(size);
        out.enqueue(piece);
      },
    }),
  );
  const file = await kept(stream, FORMS[form], signal).catch((error: unknown) => {
    throw new Refused(cause(error));
  });
  save(`${name}.${form}`, file);
  return size;
}

function harmless(): TransformStream<string, string> {
  const filter = new Harmless();
  return new TransformStream({
    transform: (text, out) => out.enqueue(filter.push(text)),
    flush: (out) => out.enqueue(filter.end()),
  });
}

/** Lets a document through, and fails at its end if it says that it is not whole. */
function whole(): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  const decoder = new TextDecoder();
  let end = "";
  return new TransformStream({
    transform(piece, out) {
      end = (end + decoder.decode(piece, { stream: true })).slice(-END);
      out.enqueue(piece);
    },
    flush() {
      if (/\],"truncated":(true|false)\}\s*$/.test(end)) return;
      const found = /\],"error":(\{.*\})\}\s*$/.exec(end.slice(end.lastIndexOf('],"error":')))?.[1];
      throw new Refused(found ? (JSON.parse(found) as ProblemDocument) : made("unavailable", "The answer ended in the middle.", "Nothing was saved. Try again."));
    },
  });
}

function cause(error: unknown): ProblemDocument {
  if (error instanceof Refused) return error.problem;
  if (error instanceof DOMException && error.name === "QuotaExceededError") return made("disk-full", "The browser has no room for this file.", "Nothing was saved. `watershed export` writes it without a browser.");
  if (error instanceof TypeError) return made("unavailable", "The answer ended in the middle.", "Nothing was saved. Try again.");
  return problemOf(error);
}

/** Writes a stream into a file of the browser's own; into its memory, where it has no such files. */
async function kept(stream: ReadableStream<Uint8Array<ArrayBuffer>>, type: string, signal: AbortSignal): Promise<Blob> {
  const root = await navigator.storage?.getDirectory?.().catch(() => undefined);
  const folder = await root?.getDirectoryHandle(FOLDER, { create: true }).catch(() => undefined);
  if (!folder || !("createWritable" in FileSystemFileHandle.prototype)) return new Response(stream, { headers: { "content-type": type } }).blob();
  await tidy(folder);
  const name = crypto.randomUUID();
  const handle = await folder.getFileHandle(name, { create: true });
  try {
    await stream.pipeTo(await handle.createWritable(), { signal });
    return await handle.getFile();
  } catch (error) {
    await folder.removeEntry(name).catch(() => {});
    throw error;
  }
}

/** Takes away what other exports have left. */
async function tidy(folder: FileSystemDirectoryHandle): Promise<void> {
  for await (const [name, handle] of folder.entries()) {
    if (handle.kind !== "file") continue;
    const isOld = await (handle as FileSystemFileHandle).getFile().then(({ lastModified }) => Date.now() - lastModified > KEPT, () => false);
    if (isOld) await folder.removeEntry(name).catch(() => {});
  }
}
