/** Rows of `discover`: a ClusterDiscovery with its status, and a record of each ARN that was found. */

import type { ClusterDiscoverySpec } from "#shared/fleet/kinds/cluster-discovery.ts";
import type { Values } from "#shared/fleet/kinds/values.ts";
import type { Condition, ObjectRow } from "#shared/fleet/rows/object-rows.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { Among } from "#shared/kube/reasons.ts";

/** An account and region that a scan could not read, or not completely. */
export interface UnseenPlace {
  readonly account: string;
  /** Absent when it is about all regions. */
  readonly region?: string;
  readonly code: string;
  readonly message: string;
}

/** A cluster of EKS that Starling does not register, with the reason. */
export interface RefusedCluster {
  readonly arn: string;
  readonly reason: Among<
    | "NameCollision"
    | "NameInvalid"
    | "NameNotServed"
    | "NotReady"
    | "ParametersUnseen"
    | "FoundByAnother"
    | "Unreadable"
    | "RegisteredByHand"
  >;
  readonly message: string;
}

/** A cluster that is gone and not forgotten, with the reason and the remedy. */
export interface KeptCluster {
  readonly cluster: string;
  readonly reason: Among<"RegisteredByHand" | "NewerRow" | "Conflict">;
  readonly message: string;
}

export interface DiscoveryStatus {
  readonly observedGeneration?: number;
  readonly scannedAt?: string;
  /** `gone` are among those that were `found`. */
  readonly clusters?: {
    readonly found: number;
    readonly refused: number;
    readonly unselected: number;
    readonly gone: number;
  };
  /** Within the last day, the newest first; at most twenty. */
  readonly forgotten?: readonly { readonly cluster: string; readonly arn: string; readonly at: string }[];
  readonly accounts?: number;
  /** `<account> <region>` for which the last scan had no time: the next scan begins there. */
  readonly resume?: string;
  /** Number of scans in succession that could not read something that a scan soon after may read. */
  readonly failures?: number;
  /** The first few of these places. */
  readonly unseen?: readonly UnseenPlace[];
  readonly refused?: readonly RefusedCluster[];
  readonly conditions: readonly Condition[];
}

export type DiscoveryRow = ObjectRow<"ClusterDiscovery", ClusterDiscoverySpec, DiscoveryStatus> & {
  /** Id of the scan that began last. */
  readonly scanId?: string;
  /** A scan runs until then at most; later than that, it has died. `nobodyScans` after its end; absent before the first scan. */
  readonly scanUntil?: string;
};

export const nobodyScans = "";

/** A value of a tag that is no valid value of its label, and the value that the label kept. */
export interface RefusedTag {
  readonly label: string;
  readonly tag: string;
  readonly value?: string;
  readonly kept?: string;
}

/** The text of a tag that is no valid value, and the value that was kept. */
export interface RefusedValue {
  /** Name of the value and of the tag. */
  readonly name: string;
  readonly value?: string;
  readonly kept?: string;
}

/** A parameter that became no value: it is a secret, its last level is no valid name, or all parameters together are too large. */
export interface RefusedParameter {
  /** Full name of the parameter. */
  readonly parameter: string;
  readonly reason: Among<"SecureString" | "NoName" | "TooLarge">;
}

/** The record of an ARN. Each ARN has one, whichever ClusterDiscovery finds it, so that no cluster gets two names. */
export interface FoundRow extends Row {
  readonly type: "Found";
  readonly arn: string;
  /** Name of the ClusterDiscovery that found it first. */
  readonly by: string;
  /** Generation of that ClusterDiscovery when the Cluster was written last. */
  readonly generation: number;
  /** Name of the Cluster; it never changes. */
  readonly cluster: string;
  /** The tags that give labels or values, as they were at `describedAt`. */
  readonly tags: Readonly<Record<string, string>>;
  readonly describedAt: string;
  /** Since when EKS has no such cluster. */
  readonly goneSince?: string;
  /** True when its tags no longer match what the ClusterDiscovery selects. */
  readonly unselected?: true;
  readonly refusedTags?: readonly RefusedTag[];
  readonly refusedValues?: readonly RefusedValue[];
  /** The values of its parameters when they were read last. */
  readonly parameters?: { readonly values: Values; readonly refused: readonly RefusedParameter[] };
  /** Its VPC at `describedAt`; empty when EKS named none, absent when an older version described it. */
  readonly vpcId?: string;
  /** The zone that it got from its VPC or from the ClusterDiscovery; absent for `home`. */
  readonly zone?: string;
  /**
   * Present when its Cluster was deleted because it was gone. The record stays for a day, because the number of clusters
   * that may be forgotten in a day is bounded. `open`: its Syncs may still have to be forgotten.
   */
  readonly forgotten?: { readonly at: string; readonly open?: true };
  /** When it was forgotten last, even if it is registered again: that deletion counts for the bound, too. */
  readonly forgottenAt?: string;
}
