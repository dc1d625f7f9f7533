/** Takes versions that CI pushes to a Source: gives a place for the upload, and then accepts it. */
import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { type ObjectReference, objectText } from "#functions/api/request/reference.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { operationsChange, unchanged, type WrittenRow } from "#functions/api/write/object-change.ts";
import { referencedRevisions } from "#functions/api/write/referenced-revisions.ts";
import { sendAfter, writeObject } from "#functions/api/write/write-object.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { defined } from "#shared/base/defined.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { isAllowed } from "#shared/fleet/rollout/approval.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { nextAct, type SourceRow, type Upload } from "#shared/fleet/rows/object-rows.ts";
import { isNewer, newerRowText } from "#shared/fleet/rows/row.ts";
import { isFullOfUploads, uploadRevision, withoutForgotten, withUpload } from "#shared/fleet/sources/uploads.ts";

export interface PushRequest {
  readonly source: { readonly namespace: string; readonly name: string };
  readonly version: string;
  /** 64 hexadecimal digits, of the tar.gz. */
  readonly sha256: string;
  readonly bytes: number;
  /** The origin of the content. */
  readonly origin?: string | undefined;
  /** The place that the first answer gave, when the bytes are there. */
  readonly upload?: string | undefined;
  readonly caller: Caller;
}

export type PushAnswer =
  | { readonly state: "upload"; readonly upload: string; readonly url: string }
  | { readonly state: "accepted" | "unchanged"; readonly revision: string; readonly reconcile: number };

/**
 * The first request of a push gets a URL for the bytes, and writes nothing; the second one, with the place of the bytes, is
 * the version. A repeated request changes nothing.
 * @throws StarlingError `NotFound`; `Forbidden` for somebody whom the Source does not list; `Conflict` when the version
 *   has other bytes, or the bytes are not there; `Deleting`, `NewerRow`.
 */
export async function pushVersion(ports: ApiPorts, request: PushRequest): Promise<PushAnswer> {
  const { source, caller, version, sha256, bytes, origin, upload } = request;
  const reference: ObjectReference & { readonly kind: "Source" } = { kind: "Source", ...source };
  const stored = await readRow(ports.table, keys.object(source.namespace, "Source", source.name));
  if (stored !== undefined && isNewer(stored)) throw refusal("NewerRow", newerRowText(stored));
  const row = pushable(stored, request, reference);
  if (upload === undefined) {
    const known = uploadIn(row, version);
    if (known !== undefined && known.sha256 === sha256 && !isToRepeat(row, known))
      return answerOf("unchanged", row, known);
    const id = ports.ids.unique();
    return { state: "upload", upload: id, url: await ports.uploads.place(blobKeys.upload(source, id), bytes) };
  }
  if ((await ports.uploads.size(blobKeys.upload(source, upload))) !== bytes) {
    throw refusal("Conflict", `the upload ${upload} is not there, or has not ${bytes} bytes; push the version again`);
  }
  const isReferenced = isFullOfUploads(row.operations) ? await referencedRevisions(row, ports.table) : () => true;
  const change = await writeObject(ports, {
    reference,
    verb: "push",
    caller,
    decide(before) {
      const now = pushable(before, request, reference);
      const known = uploadIn(now, version);
      const repeats = known !== undefined && known.sha256 === sha256;
      if (repeats && !isToRepeat(now, known)) return unchanged(now);
      const at = ports.clock.now();
      const act = { by: caller.principal, at: at.toISOString(), ...defined({ reason: caller.reason }) };
      const number = nextAct(now.operations);
      const { uploads = [] } = now.operations;
      const pushed = { ...act, number, version, sha256, id: upload, ...defined({ origin }) };
      const all = withUpload(uploads, pushed, repeats ? "kept" : "newest");
      const next = withoutForgotten(now, all, isReferenced);
      return operationsChange(now, { ...now.operations, uploads: next, reconcile: { ...act, number } }, at);
    },
  });
  await sendAfter(ports, [change]);
  const after = change.after as SourceRow;
  const accepted = uploadIn(after, version);
  if (accepted === undefined) throw new Error("a pushed version is not in its row");
  return answerOf(change.outcome === "unchanged" ? "unchanged" : "accepted", after, accepted);
}

function answerOf(state: "accepted" | "unchanged", { operations }: SourceRow, upload: Upload): PushAnswer {
  return { state, revision: uploadRevision(upload), reconcile: operations.reconcile?.number ?? 0 };
}

/** The row, if this caller may push this version with these bytes. */
function pushable(
  row: WrittenRow | undefined,
  { version, sha256, caller }: PushRequest,
  reference: ObjectReference,
): SourceRow {
  const object = objectText(reference);
  if (row?.type !== "Source") throw refusal("NotFound", `${object} does not exist`);
  const { external } = row.spec;
  if (external === undefined) throw refusal("BadRequest", `${object} takes no pushes: it has no spec.external`);
  if (!isAllowed({ by: external.principals }, caller.principal)) {
    const remedy = "add the role or user to spec.external.principals";
    throw refusal("Forbidden", `${caller.principal} may not push to ${object}; ${remedy}`);
  }
  if (row.operations.deletion !== undefined) throw refusal("Deleting", `${object} is being deleted`);
  const known = uploadIn(row, version);
  if (known !== undefined && known.sha256 !== sha256 && !isRefused(row, known)) {
    const said = `version ${version} of ${object} was pushed with other bytes (sha256:${known.sha256}, by ${known.by} at ${known.at})`;
    throw refusal("Conflict", `${said}; choose another version`);
  }
  return row;
}

function uploadIn({ operations }: SourceRow, version: string): Upload | undefined {
  return operations.uploads?.find((each) => each.version === version);
}

/** Nobody has a version that was refused for its content. */
function isRefused({ status }: SourceRow, upload: Upload): boolean {
  return status.refused?.revision === uploadRevision(upload);
}

/** The upload is gone before an artifact was made of it, or its content was refused. */
function isToRepeat(row: SourceRow, upload: Upload): boolean {
  return (
    isRefused(row, upload) ||
    row.status.conditions.some(({ type, reason }) => type === "Ready" && reason === "ArtifactGone")
  );
}
