import { documentReference } from "#functions/api/request/reference.ts";
import type { Document } from "#shared/fleet/kinds/document.ts";
import { type BucketRules, bucketProblem, ownBucketProblem } from "#shared/fleet/source-buckets.ts";

/** A Source of Starling's own bucket would hand the artifacts of all namespaces to one of them. */
export function ownBucketProblems(document: Document, rules: BucketRules | undefined) {
  const isOwn = document.kind === "Source" && document.spec.s3?.bucket === rules?.own && rules !== undefined;
  return isOwn ? [{ field: "spec.s3.bucket", message: ownBucketProblem }] : [];
}

/** A bucket that Starling may not read yet is no error, because an operator may allow it later. */
export function bucketWarnings(
  documents: readonly Document[],
  rules: BucketRules | undefined,
): readonly (readonly string[])[] {
  return documents.map((document) => {
    if (document.kind !== "Source" || document.spec.s3 === undefined || rules === undefined) return [];
    const { bucket } = document.spec.s3;
    const problem = bucketProblem(bucket, documentReference(document).namespace ?? "", rules);
    return problem === undefined ? [] : [`bucket ${bucket} ${problem}`];
  });
}
