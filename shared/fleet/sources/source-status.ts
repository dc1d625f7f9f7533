/** The status of a Source after an attempt: pure functions of the status before and the result. */

import { defined } from "#shared/base/defined.ts";
import { type ErrorCode, type OtherCode, unverified } from "#shared/base/error-codes.ts";
import type {
  Artifact,
  AskedRevision,
  Condition,
  FetchStart,
  SourceRow,
  SourceStatus,
} from "#shared/fleet/rows/object-rows.ts";
import { reportedCondition, type StatedCondition } from "#shared/fleet/rows/stated-reason.ts";
import { tagsAfter } from "#shared/fleet/sources/followed-tags.ts";
import { reportedReason } from "#shared/kube/reasons.ts";
import type { SourceListing } from "#shared/source/http-listing.ts";
import { verifiedText } from "#shared/source/signatures/verified.ts";

/** Failures of a verification. */
export const signatureCodes: ReadonlySet<string> = new Set<ErrorCode>(unverified);

type Before = Pick<SourceRow, "spec" | "status" | "generation" | "operations">;

/** Names an artifact for `status.announced`: another commit is announced even when its files are equal. */
export function announcementOf(artifact: Artifact): string {
  return `${artifact.revision} ${artifact.digest}`;
}

/** The reference was resolved, and its artifact is stored. */
export function resolvedStatus(
  row: Before,
  found: { readonly artifact: Artifact; readonly observed: string; readonly listing?: SourceListing | undefined },
  now: Date,
): SourceStatus {
  const { failures: _failures, fetch: _fetch, refused: _refused, lost: _lost, ...rest } = row.status;
  const { limitedUntil: _limitedUntil, followedTags: _followedTags, staleSince: _staleSince, ...before } = rest;
  const { revision, verified, movedFrom } = found.artifact;
  const moved = movedFrom === undefined ? "" : `; the tag moved, and was at ${movedFrom} before`;
  const message = `stored artifact for revision ${revision}${moved}`;
  return {
    ...before,
    ...attempted(row, now),
    artifact: found.artifact,
    observedReference: found.observed,
    ...defined({ listing: found.listing }),
    ...defined({ followedTags: tagsAfter(row, revision) }),
    conditions: conditionsAfter(row, now, [
      { type: "Ready", status: "True", reason: "Succeeded", message },
      { type: "ArtifactInStorage", status: "True", reason: "Succeeded", message },
      ...(verified === undefined
        ? []
        : [{ type: "SourceVerified", status: "True", reason: "Succeeded", message: verifiedText(verified) } as const]),
    ]),
  };
}

/**
 * The artifact of a suspended Source was stored once more or, when `lost` has its digest, searched; nothing else
 * happened.
 */
export function keptStatus(
  row: Before,
  { artifact, lost }: { readonly artifact: Artifact; readonly lost: string | undefined },
  now: Date,
): SourceStatus {
  if (lost === undefined) return { ...row.status, artifact };
  const message = `the artifact ${lost} is gone; it is fetched again when the Source is resumed`;
  const gone = { status: "False", reason: "ArtifactLost", message } as const;
  const conditions = row.status.conditions.map((condition) =>
    condition.type === "Ready" || condition.type === "ArtifactInStorage"
      ? { ...condition, ...gone }
      : reportedCondition(condition),
  );
  return { ...row.status, lost, conditions: conditionsAfter(row, now, conditions) };
}

export interface SourceFailure {
  readonly code: ErrorCode | OtherCode;
  readonly message: string;
  /** The revision will be the same next time, and so will its failure. */
  readonly refused?: AskedRevision;
  /** The host wants no request before. */
  readonly limitedUntil?: string;
}

/** The attempt failed: the last good artifact stays, and with it everything that uses the Source. */
export function failedSourceStatus(row: Before, failure: SourceFailure, now: Date): SourceStatus {
  const { observedReference, fetch: _fetch, limitedUntil: _limitedUntil, ...before } = row.status;
  const sameSpec = before.observedGeneration === row.generation && observedReference !== undefined;
  const { message, refused, limitedUntil } = failure;
  const reason = reportedReason(failure.code);
  const stored = row.status.conditions.filter((condition) => condition.type === "ArtifactInStorage");
  const unverified = { type: "SourceVerified", status: "False", reason, message } as const;
  const verified = signatureCodes.has(failure.code)
    ? [unverified]
    : row.status.conditions.filter(({ type }) => type === "SourceVerified").map(reportedCondition);
  const lost = { status: "False", reason: "ArtifactLost", message: "it is gone, and has to be fetched again" } as const;
  return {
    ...before,
    ...attempted(row, now),
    failures: (before.failures ?? 0) + 1,
    ...defined({ limitedUntil, staleSince: staleAfter(row.status) }),
    // The observation belongs to another spec: the next attempt has to fetch.
    ...(sameSpec ? { observedReference } : {}),
    ...(refused === undefined ? {} : { refused: { ...refused, code: failure.code, message } }),
    conditions: conditionsAfter(row, now, [
      { type: "Ready", status: "False", reason, message },
      { type: "FetchFailed", status: "True", reason, message },
      ...stored.map((condition) =>
        before.lost === undefined ? reportedCondition(condition) : { ...condition, ...lost },
      ),
      ...verified,
    ]),
  };
}

/** The last successful poll, unless a failure has recorded it. */
function staleAfter({ artifact, staleSince, attemptedAt, failures, conditions }: SourceStatus): string | undefined {
  if (artifact === undefined || staleSince !== undefined) return staleSince;
  // A version that did not record it wrote the failures before.
  return failures === undefined ? attemptedAt : conditions.find(({ type }) => type === "Ready")?.since;
}

/** A fetch begins. The status tells of one that died before; the request and the spec stay open. */
export function fetchingStatus(row: Before, start: FetchStart, died: SourceFailure | undefined): SourceStatus {
  if (died === undefined) return { ...row.status, fetch: start };
  const {
    handledReconcile: _handled,
    observedGeneration: _observed,
    ...failed
  } = failedSourceStatus(row, died, new Date(start.startedAt));
  const { handledReconcile, observedGeneration } = row.status;
  return { ...failed, ...defined({ handledReconcile, observedGeneration }), fetch: start };
}

function attempted(row: Before, now: Date): Partial<SourceStatus> {
  const asked = row.operations.reconcile?.number;
  return {
    attemptedAt: now.toISOString(),
    observedGeneration: row.generation,
    ...defined({ handledReconcile: asked }),
  };
}

/** `since` moves only when the status does. */
function conditionsAfter(row: Before, now: Date, next: readonly StatedCondition[]): Condition[] {
  return next.map((condition) => {
    const before = row.status.conditions.find((known) => known.type === condition.type);
    const since = before?.status === condition.status ? before.since : now.toISOString();
    return { ...condition, since };
  });
}
