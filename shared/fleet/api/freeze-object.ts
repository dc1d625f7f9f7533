import { defined } from "#shared/base/defined.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { type Freeze, isInForce } from "#shared/fleet/rows/freezes-row.ts";
import type { Row } from "#shared/fleet/rows/row.ts";

/** A freeze in the API's form. */
export interface FreezeObject {
  readonly apiVersion: typeof ourApiVersion;
  readonly kind: "Freeze";
  readonly metadata: { readonly name: string; readonly resourceVersion: string; readonly creationTimestamp: string };
  readonly spec: {
    /** A label selector; when absent, every cluster. */
    readonly clusters?: string;
    readonly reason: string;
    readonly until?: string;
  };
  readonly status: {
    readonly by: string;
    /** Number of registered clusters that it covers now. */
    readonly clusters: number;
    readonly inForce: boolean;
  };
}

export function freezeObject(
  { name, clusters, by, at, reason, until }: Freeze,
  seen: { readonly row: Pick<Row, "version">; readonly clusters: number; readonly now: Date },
): FreezeObject {
  return {
    apiVersion: ourApiVersion,
    kind: "Freeze",
    metadata: { name, resourceVersion: String(seen.row.version), creationTimestamp: at },
    spec: {
      ...(clusters === undefined ? {} : { clusters: clusters.text }),
      reason,
      ...defined({ until }),
    },
    status: { by, clusters: seen.clusters, inForce: isInForce({ until }, seen.now) },
  };
}
