/** Whether the signatures of a revision count, as `starling source verify` prints it. */
import type { Verified } from "#shared/source/signatures/verified.ts";

interface VerdictHead {
  readonly source: string;
  readonly namespace: string;
  /** `starling`: the function that packages revisions verified it. `here`: the command did, with the caller's own git. */
  readonly by: "starling" | "here";
  /** The artifacts of other Sources that are a part of the revision; absent without any. */
  readonly included?: readonly IncludedVerdict[];
}

interface IncludedHead {
  readonly source: string;
  readonly fromPath: string;
  readonly toPath: string;
  readonly revision: string;
  readonly digest: string;
}

/** Whether the signatures of an included revision counted when Starling took it. */
export type IncludedVerdict =
  | (IncludedHead & Verified & { readonly verified: true; readonly at: string })
  /** With the reason `NotDemanded`, or `NotFound` for a revision that is known no longer. */
  | (IncludedHead & { readonly verified: false; readonly reason: string });

export type SourceVerdict =
  | (VerdictHead & Verified & { readonly verified: true; readonly revision: string; readonly at: string })
  | (VerdictHead & {
      readonly verified: false;
      readonly revision?: string;
      /** A code of docs/reasons.md, or `NotDemanded` or `NotPolled`. */
      readonly reason: string;
      readonly message: string;
      /** The revision that stays in use. */
      readonly inUse?: string;
    });
