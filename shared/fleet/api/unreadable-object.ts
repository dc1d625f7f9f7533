import { defined } from "#shared/base/defined.ts";
import type { AnyObject, ApiObject } from "#shared/fleet/api/objects.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import type { Condition } from "#shared/fleet/rows/object-rows.ts";
import { type NewerRow, newerRowText } from "#shared/fleet/rows/row.ts";
import type { Reason } from "#shared/kube/reasons.ts";

/**
 * An object that only a newer version of Starling can read, as its place in the table tells of it. It stands where the
 * object would: a list that left it out would say that it is gone, and one that failed would hide all the others.
 */
export interface UnreadableObject<Kind extends AnyObject["kind"] = AnyObject["kind"]> {
  readonly apiVersion: typeof ourApiVersion;
  readonly kind: Kind;
  readonly metadata: Pick<ApiObject<Kind, unknown, unknown>["metadata"], "name" | "namespace">;
  /** Present for a Sync on a cluster. Only the newer version can read the rest. */
  readonly spec: { readonly cluster?: string };
  readonly status: {
    readonly state: "Unreadable";
    readonly conditions: readonly Omit<Condition, "since">[];
  };
}

export interface ObjectPlace<Kind extends AnyObject["kind"]> {
  readonly kind: Kind;
  readonly namespace?: string;
  readonly name: string;
  readonly cluster?: string;
}

/** The reason for all rows that a newer version wrote. */
export const newerRow = "NewerRow" satisfies Reason;

export function unreadableObject<Kind extends AnyObject["kind"]>(
  row: NewerRow,
  { kind, namespace, name, cluster }: ObjectPlace<Kind>,
): UnreadableObject<Kind> {
  return {
    apiVersion: ourApiVersion,
    kind,
    metadata: { name, ...defined({ namespace }) },
    spec: cluster === undefined ? {} : { cluster },
    status: {
      state: "Unreadable",
      conditions: [{ type: "Ready", status: "Unknown", reason: newerRow, message: newerRowText(row) }],
    },
  };
}

/** What lists hold: objects, and among them those that this version cannot read. */
export type ListedObject = AnyObject | UnreadableObject;

export function isUnreadable(object: { readonly status: object }): object is UnreadableObject {
  return "state" in object.status && object.status.state === "Unreadable";
}
