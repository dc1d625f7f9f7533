import { withoutLogins } from "#shared/base/excerpt.ts";
import type { Json } from "#shared/base/json.ts";
import { plainLine, plainText } from "#shared/base/plain-text.ts";

/** The place of a problem in a set of manifests. The message names every known member. */
export interface ManifestPlace {
  readonly file: string;
  /** Counted from 1 over all documents of the file, empty ones included. */
  readonly document?: number;
  /** Counted from 1. */
  readonly line?: number;
  /** Counted from 1. */
  readonly column?: number;
  /** `Kind namespace/name`, as far as they could be read. */
  readonly object?: string;
  /** The path of the field, such as `metadata.labels.app`. */
  readonly field?: string;
}

export type ManifestErrorCode =
  | "InvalidYaml"
  | "InvalidObject"
  | "DuplicateObject"
  | "NotKubernetes"
  | "EmptyRender"
  | "KustomizationRefused"
  | "ChartRefused"
  | "ChartFailed"
  | "ValuesNotFound"
  | "InvalidValues"
  | "HookRefused"
  | "MarkRefused"
  | "OrderRefused"
  | "LocalConfigRefused"
  | "NonDeterministicRender"
  | "SubstitutionFailed";

/**
 * A manifest, or a file that should contain manifests, that cannot be used. The error is never transient: only another
 * revision of the source, or another path, helps.
 */
export class ManifestError extends Error {
  readonly code: ManifestErrorCode;
  readonly place: ManifestPlace;
  /** The problem and the remedy, without the place. */
  readonly reason: string;

  constructor(code: ManifestErrorCode, place: ManifestPlace, reason: string) {
    // Both can contain names and words of a repository, which a reader of the message may not be allowed to see.
    const shown = plainText(withoutLogins(reason));
    super(`${plainLine(describePlace(place))}: ${shown}`);
    this.name = "ManifestError";
    this.code = code;
    this.place = place;
    this.reason = shown;
  }
}

function describePlace(place: ManifestPlace): string {
  let text = place.file;
  if (place.line !== undefined) text += `:${place.line}`;
  if (place.line !== undefined && place.column !== undefined) text += `:${place.column}`;
  if (place.document !== undefined) text += `, document ${place.document}`;
  if (place.object !== undefined) text += `, ${place.object}`;
  if (place.field !== undefined) text += `, ${place.field}`;
  return text;
}

/** A short description of a value, for a message about what was expected instead. */
export function describeValue(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a map";
  return `the ${typeof value === "bigint" ? "number" : typeof value} ${JSON.stringify(String(value)).slice(1, -1).slice(0, 60)}`;
}
