import { renderObjects } from "#functions/render/render-objects.ts";
import { unpackArtifact } from "#shared/adapters/artifact-archive.ts";
import { blobKeys } from "#shared/domain/blob-keys.ts";
import { ManifestError } from "#shared/domain/manifest-error.ts";
import { encodeRendering } from "#shared/domain/rendering.ts";
import { backoffSeconds, dueAttributes, later } from "#shared/domain/rows/due.ts";
import { keys, type Subject } from "#shared/domain/rows/keys.ts";
import type { RenderingRow } from "#shared/domain/rows/rollout-rows.ts";
import { errorMessage, isConflict, StarlingError } from "#shared/errors.ts";
import { type RenderMessage, subjectKey } from "#shared/messages.ts";
import type { BlobStore, Clock, Ids, KustomizeRunner, Log, MessageSender, Table } from "#shared/ports.ts";

export interface RenderPorts {
  readonly table: Table;
  readonly blobs: BlobStore;
  readonly sender: MessageSender;
  readonly kustomize: KustomizeRunner;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

/** Longer than a rendering may take, so that nobody starts a second one beside it. */
const CLAIM_SECONDS = 120;
const MAX_MESSAGE_LENGTH = 2000;

/**
 * Renders one distinct input, once: whoever claims its row does it, others leave their name and are told with the rest.
 * A claim that ran out belongs to a worker that died and is taken over; two that render after all store the same bytes.
 */
export async function render(message: RenderMessage, ports: RenderPorts): Promise<void> {
  const claimed = await claim(message, ports);
  if (claimed === undefined) return;
  const outcome = await renderClaimed(claimed, ports);
  await finish({ claimed, outcome, notify: message.notify }, ports);
}

/** @returns undefined when there is nothing to render: it is done, at work, or was never asked for. */
async function claim(message: RenderMessage, ports: RenderPorts): Promise<RenderingRow | undefined> {
  const now = ports.clock.now();
  const row = await ports.table.get<RenderingRow>(keys.rendering(message.input));
  if (row === undefined) return undefined;
  if (row.state !== "Pending") {
    await tell(withWaiting([], message.notify), ports);
    return undefined;
  }
  const waiting = withWaiting(row.waiting ?? [], message.notify);
  const busy = row.claim !== undefined && row.claim.until > now.toISOString();
  if (busy && waiting.length === (row.waiting ?? []).length) return undefined;
  const until = later(now, CLAIM_SECONDS);
  const next: RenderingRow = busy
    ? { ...row, waiting, version: row.version + 1 }
    : {
        ...row,
        ...dueAttributes(row, until),
        waiting,
        claim: { by: ports.ids.unique(), until },
        tries: row.tries + 1,
        version: row.version + 1,
      };
  const written = await replaced(row, next, ports.table);
  // Somebody else wrote the row: look at it again.
  if (!written) return claim(message, ports);
  return busy ? undefined : next;
}

type Outcome =
  | { readonly kind: "done"; readonly digest: string; readonly objects: number }
  | { readonly kind: "failed"; readonly failure: NonNullable<RenderingRow["failure"]> };

async function renderClaimed(row: RenderingRow, ports: RenderPorts): Promise<Outcome> {
  try {
    const archive = await ports.blobs.get(blobKeys.artifact(row.artifactDigest));
    const files = await unpackArtifact(archive, row.artifactDigest);
    const { path, render: options } = row;
    const request = { files, path, ...(options === undefined ? {} : { render: options }) };
    const objects = await renderObjects(request, ports.kustomize);
    const rendering = encodeRendering(objects);
    await ports.blobs.putOnce(blobKeys.rendering(rendering.digest), rendering.bytes);
    return { kind: "done", digest: rendering.digest, objects: objects.length };
  } catch (error) {
    return { kind: "failed", failure: failureOf(error) };
  }
}

/** Failures that say nothing about the input, and pass when an operator has acted. */
const isOurs: ReadonlySet<string> = new Set(["BlobNotFound", "KubectlNotFound"]);

function failureOf(error: unknown): NonNullable<RenderingRow["failure"]> {
  const message = errorMessage(error).slice(0, MAX_MESSAGE_LENGTH);
  if (error instanceof ManifestError) return { code: error.code, message, permanent: true };
  if (!(error instanceof StarlingError)) return { code: "Internal", message, permanent: false };
  return { code: error.code, message, permanent: error.retry === "permanent" && !isOurs.has(error.code) };
}

interface Finished {
  readonly claimed: RenderingRow;
  readonly outcome: Outcome;
  readonly notify: Subject | undefined;
}

/** Writes what came out and tells everybody who waits; what may pass is tried again later, its reason in the row. */
async function finish(finished: Finished, ports: RenderPorts): Promise<void> {
  const { claimed, outcome } = finished;
  const row = await ports.table.get<RenderingRow>(claimed);
  if (row === undefined || row.state !== "Pending" || row.claim?.by !== claimed.claim?.by) {
    await tell(withWaiting([], finished.notify), ports);
    return;
  }
  const next = settled(row, outcome, ports.clock.now());
  if (!(await replaced(row, next, ports.table))) return finish(finished, ports);
  if (outcome.kind === "failed") {
    const { code, message, permanent } = outcome.failure;
    ports.log.warn("rendering failed", { input: row.input, path: row.path, code, error: message, permanent });
  }
  if (next.state !== "Pending") await tell(row.waiting ?? [], ports);
}

function settled(row: RenderingRow, outcome: Outcome, now: Date): RenderingRow {
  const { claim: _claim, dueShard: _shard, dueKey: _key, dispatches: _dispatches, failure: _failure, ...rest } = row;
  const next = { ...rest, version: row.version + 1 };
  if (outcome.kind === "done") {
    const { waiting: _waiting, ...done } = next;
    return { ...done, state: "Done", digest: outcome.digest, objects: outcome.objects };
  }
  if (!outcome.failure.permanent) {
    return { ...next, failure: outcome.failure, ...dueAttributes(row, later(now, backoffSeconds(row.tries))) };
  }
  const { waiting: _waiting, ...failed } = next;
  return { ...failed, state: "Failed", failure: outcome.failure };
}

/** @returns false when somebody else has written the row since it was read. */
async function replaced(row: RenderingRow, next: RenderingRow, table: Table): Promise<boolean> {
  try {
    await table.write([{ put: next, when: { version: row.version } }]);
    return true;
  } catch (error) {
    if (isConflict(error)) return false;
    throw error;
  }
}

function withWaiting(waiting: readonly Subject[], subject: Subject | undefined): readonly Subject[] {
  if (subject === undefined || waiting.some((other) => subjectKey(other) === subjectKey(subject))) return waiting;
  return [...waiting, subject];
}

async function tell(subjects: readonly Subject[], ports: RenderPorts): Promise<void> {
  if (subjects.length === 0) return;
  await ports.sender.send(subjects.map((subject) => ({ to: "rollout", subject })));
}
