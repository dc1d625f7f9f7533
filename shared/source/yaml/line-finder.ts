import { EVENT_ID, type Event, getScalarValue, parseEvents } from "js-yaml";

type Frame =
  | { readonly kind: "map"; key: string | undefined; readonly matched: boolean }
  | { readonly kind: "list"; index: number; readonly matched: boolean };

/**
 * The line (from 1) of the field at `path` in a document (from 1), or of its nearest existing ancestor: the place that
 * an error about a field points to. A member that comes through a merge key or an alias is found at its ancestor.
 */
export type LineOf = (document: number, path: readonly (string | number)[]) => number;

/**
 * Reads the text once, when the first line is requested, because a file of thousands of documents can have as many
 * problems.
 */
export function lineFinder(text: string): LineOf {
  let documents: readonly (readonly Event[])[] | undefined;
  return (document, path) => {
    documents ??= documentsOf(parseEvents(text, {}));
    return lineIn(text, documents[document - 1] ?? [], path);
  };
}

function documentsOf(events: readonly Event[]): readonly (readonly Event[])[] {
  const documents: Event[][] = [];
  for (const event of events) {
    if (event.type === EVENT_ID.DOCUMENT) documents.push([]);
    else documents.at(-1)?.push(event);
  }
  return documents;
}

function lineIn(text: string, events: readonly Event[], path: readonly (string | number)[]): number {
  let best = 0;
  let bestDepth = -1;
  const frames: Frame[] = [];

  function visit(offset: number, opens: "map" | "list" | undefined): void {
    const parent = frames.at(-1);
    const depth = frames.length;
    const step = parent === undefined ? undefined : parent.kind === "map" ? parent.key : parent.index;
    const matched =
      parent === undefined || (parent.matched && depth <= path.length && String(path[depth - 1]) === String(step));
    if (matched && depth > bestDepth) {
      best = parent?.kind === "map" ? keyOffset : offset;
      bestDepth = depth;
    }
    if (parent?.kind === "list") parent.index++;
    if (parent?.kind === "map") parent.key = undefined;
    if (opens === "map") frames.push({ kind: "map", key: undefined, matched });
    if (opens === "list") frames.push({ kind: "list", index: 0, matched });
  }

  let keyOffset = 0;
  for (const event of events) {
    if (event.type === EVENT_ID.DOCUMENT) continue;
    if (event.type === EVENT_ID.POP) {
      frames.pop();
      continue;
    }
    if (event.type === EVENT_ID.MAPPING) {
      visit(event.start, "map");
      continue;
    }
    if (event.type === EVENT_ID.SEQUENCE) {
      visit(event.start, "list");
      continue;
    }
    const offset = event.type === EVENT_ID.SCALAR ? event.valueStart : event.anchorStart;
    const parent = frames.at(-1);
    if (parent?.kind === "map" && parent.key === undefined) {
      parent.key = event.type === EVENT_ID.SCALAR ? getScalarValue(text, event) : "";
      keyOffset = offset;
      continue;
    }
    visit(offset, undefined);
  }
  return text.slice(0, best).split("\n").length;
}
