/** Rows of `discover`: a ClusterDiscovery with its status, and what became of each ARN that was found. */

import type { ClusterDiscoverySpec } from "#shared/fleet/kinds/cluster-discovery.ts";
import type { Values } from "#shared/fleet/kinds/values.ts";
import type { Condition, ObjectRow } from "#shared/fleet/rows/object-rows.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { Among } from "#shared/kube/reasons.ts";

/** An account in a region that a look did not get to see, or not all of. */
export interface UnseenPlace {
  readonly account: string;
  /** Absent: it is about all of them. */
  readonly region?: string;
  readonly code: string;
  readonly message: string;
}

/** A cluster that EKS has, and that is none of Starling's: why not. */
export interface RefusedCluster {
  readonly arn: string;
  readonly reason: Among<
    | "NameCollision"
    | "NameInvalid"
    | "NotReady"
    | "ParametersUnseen"
    | "FoundByAnother"
    | "Unreadable"
    | "RegisteredByHand"
  >;
  readonly message: string;
}

/** A cluster that is gone, and is not forgotten: why not, and what to do. */
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
  /** `<account> <region>` that the last look had no time for: the next one begins there. */
  readonly resume?: string;
  /** In a row: looks that did not get to see what another one soon may. */
  readonly failures?: number;
  /** The first of them. */
  readonly unseen?: readonly UnseenPlace[];
  readonly refused?: readonly RefusedCluster[];
  readonly conditions: readonly Condition[];
}

export type DiscoveryRow = ObjectRow<"ClusterDiscovery", ClusterDiscoverySpec, DiscoveryStatus> & {
  /** Of the look that was begun last. */
  readonly scanId?: string;
  /** Somebody looks, or died, if that is over; `nobodyScans` when the look was ended. Absent: there was none yet. */
  readonly scanUntil?: string;
};

export const nobodyScans = "";

/** A value of a tag that its label did not take, and what the label kept. */
export interface RefusedTag {
  readonly label: string;
  readonly tag: string;
  readonly value?: string;
  readonly kept?: string;
}

/** What a tag said that its value did not take, and what the value kept. */
export interface RefusedValue {
  /** Of the value, and of the tag. */
  readonly name: string;
  readonly value?: string;
  readonly kept?: string;
}

/** A parameter that became no value: a secret, one whose last level is no name of a value, or all of them, too large. */
export interface RefusedParameter {
  /** Its whole name. */
  readonly parameter: string;
  readonly reason: Among<"SecureString" | "NoName" | "TooLarge">;
}

/** What became of an ARN: there is one of each, whatever looks for it, so that no cluster gets two names. */
export interface FoundRow extends Row {
  readonly type: "Found";
  readonly arn: string;
  /** Name of the ClusterDiscovery that found it first. */
  readonly by: string;
  /** Its spec when the Cluster was written last. */
  readonly generation: number;
  /** Name of the Cluster, which it keeps. */
  readonly cluster: string;
  /** Those that say something about the cluster, as they were then. */
  readonly tags: Readonly<Record<string, string>>;
  readonly describedAt: string;
  /** Since when its account says that there is no such cluster. */
  readonly goneSince?: string;
  /** It has other tags by now than are looked for. */
  readonly unselected?: true;
  readonly refusedTags?: readonly RefusedTag[];
  readonly refusedValues?: readonly RefusedValue[];
  /** What its parameters said when they were seen last. */
  readonly parameters?: { readonly values: Values; readonly refused: readonly RefusedParameter[] };
  /**
   * Its Cluster was deleted, because it was gone: nobody's any more, and kept for a day, for there is a bound.
   * `open`: its Syncs may still have to be forgotten.
   */
  readonly forgotten?: { readonly at: string; readonly open?: true };
  /** When it was forgotten last, though it is there again: the bound is of what was done, and not of what it left. */
  readonly forgottenAt?: string;
}
