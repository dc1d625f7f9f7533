/** A revision of a Source at which templates stay: `api` asks for it, and `resolve` finds its artifact. */
import type { ErrorCode, OtherCode } from "#shared/base/error-codes.ts";
import { type SourcePin, templatePins } from "#shared/fleet/kinds/template-sources.ts";
import { dueAttributes, watchdogAt } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Artifact } from "#shared/fleet/rows/object-rows.ts";
import { type Row, type RowKeyOf, rowSchema } from "#shared/fleet/rows/row.ts";

export interface PinFailure {
  readonly code: ErrorCode | OtherCode;
  readonly message: string;
  /** Failures in a row. */
  readonly failures: number;
}

export interface PinRow extends Row {
  readonly type: "Pin";
  /** The artifact of the revision, once it was found. Another spec of the Source makes another one. */
  readonly artifact?: Artifact;
  /** Why there is none, or why the one above does not count under the present spec of the Source. */
  readonly failure?: PinFailure;
  /** A revision and its digest, or a failure, of which every owner was informed. */
  readonly announced?: string;
}

const dayMs = 86_400_000;

/** Asks for a revision: the row is made, or due at once. Nothing else in it changes. */
export function pinRequest(namespace: string, { source, revision }: SourcePin, now: Date) {
  const key = keys.pin({ namespace, name: source }, revision);
  return {
    update: key,
    set: { type: "Pin", schema: rowSchema, ...dueAttributes(key, watchdogAt(now, 0)) },
    // A row that was forgotten has another version when it is made anew, so that no late write takes it for the former one.
    add: { version: 1 + (now.getTime() % dayMs) },
  };
}

/** The row is due at once. @throws ConflictError when another writer was faster. */
export function pinWakeUp(row: PinRow, now: Date) {
  return {
    update: { pk: row.pk, sk: row.sk },
    set: { ...dueAttributes(row, now.toISOString()) },
    add: { version: 1 },
    when: [{ attribute: "version", equals: row.version }],
  };
}

/** The keys of the rows of the revisions at which templates stay. */
export function pinKeys(namespace: string, templates: Parameters<typeof templatePins>[0]): readonly RowKeyOf<"Pin">[] {
  return templatePins(templates).map(({ source, revision }) => keys.pin({ namespace, name: source }, revision));
}
