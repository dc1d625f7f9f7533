import { blobKeys } from "#shared/domain/blob-keys.ts";
import { backoffSeconds, dueAttributes, later, restSeconds } from "#shared/domain/rows/due.ts";
import { keys, type Subject } from "#shared/domain/rows/keys.ts";
import type { RenderingRow } from "#shared/domain/rows/rollout-rows.ts";
import { errorMessage, isConflict, StarlingError } from "#shared/errors.ts";
import { type RenderMessage, subjectKey } from "#shared/messages.ts";
import type { BlobStore, Builder, Clock, Ids, Log, MessageSender, Table } from "#shared/ports.ts";

export interface RenderPorts {
  readonly table: Table;
  readonly blobs: BlobStore;
  readonly sender: MessageSender;
  readonly builder: Builder;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

/** Longer than a rendering may take, so that nobody starts a second one beside it. */
const CLAIM_SECONDS = 120;
const MAX_MESSAGE_LENGTH = 2000;
/** So often may a rendering end in a way that may be the input's fault, or begin and never end, before it has failed. */
const MAX_STRIKES = 5;

/**
 * Has one distinct input rendered, once: whoever claims its row does it, others leave their name and are told with the rest.
 * A claim that ran out belongs to a worker that died and is taken over; two that render after all store the same bytes.
 * What failed in a way that may not be the input's fault is tried again, ever more rarely.
 */
export async function render(message: RenderMessage, ports: RenderPorts): Promise<void> {
  const claimed = await claim(message, ports);
  if (claimed === undefined) return;
  const { row, died } = claimed;
  const outcome = died && (row.strikes ?? 0) >= MAX_STRIKES ? neverEnded : await renderClaimed(row, ports);
  await finish({ claimed: row, outcome, notify: message.notify }, ports);
}

interface Claimed {
  readonly row: RenderingRow;
  /** Whoever had it before began, and never said how it ended. */
  readonly died: boolean;
}

/** @returns undefined when there is nothing to render: it is done, at work, or was never asked for. */
async function claim(message: RenderMessage, ports: RenderPorts): Promise<Claimed | undefined> {
  const now = ports.clock.now();
  const row = await ports.table.get<RenderingRow>(keys.rendering(message.input));
  if (row === undefined) return undefined;
  if (row.state !== "Pending" && !hasRested(row, now)) {
    await tell(withWaiting([], message.notify), ports);
    return undefined;
  }
  const waiting = withWaiting(row.waiting ?? [], message.notify);
  const busy = row.claim !== undefined && row.claim.until > now.toISOString();
  const died = row.claim !== undefined && !busy;
  if (busy && waiting.length === (row.waiting ?? []).length) return undefined;
  const until = later(now, CLAIM_SECONDS);
  const next: RenderingRow = busy
    ? { ...row, waiting, version: row.version + 1 }
    : {
        ...row,
        ...dueAttributes(row, until),
        state: "Pending",
        waiting,
        claim: { by: ports.ids.unique(), until },
        tries: row.tries + 1,
        ...(died ? { strikes: (row.strikes ?? 0) + 1 } : {}),
        version: row.version + 1,
      };
  const written = await replaced(row, next, ports.table);
  // Somebody else wrote the row: look at it again.
  if (!written) return claim(message, ports);
  return busy ? undefined : { row: next, died };
}

/** True of what failed and is due again. */
function hasRested({ restsUntil }: RenderingRow, now: Date): boolean {
  return restsUntil !== undefined && restsUntil <= now.toISOString();
}

type Failure = NonNullable<RenderingRow["failure"]>;

type Outcome =
  | { readonly kind: "done"; readonly digest: string; readonly objects: number }
  | {
      readonly kind: "failed";
      readonly failure: Failure;
      /** It may be the input's fault: not for ever. */
      readonly strike?: true;
    };

/** Counted when its claim was taken over. */
const neverEnded: Outcome = {
  kind: "failed",
  failure: { code: "RenderNeverEnded", message: "it began and never ended", permanent: false },
};

async function renderClaimed(row: RenderingRow, ports: RenderPorts): Promise<Outcome> {
  try {
    const { artifactDigest, path, render: options, claim } = row;
    if (claim === undefined) throw new Error("a rendering that nobody claimed");
    const request = { artifactDigest, path, ...(options === undefined ? {} : { render: options }), attempt: claim.by };
    const { digest, objects, bytes } = await ports.builder.build(request);
    await ports.blobs.putOnce(blobKeys.rendering(digest), bytes);
    return { kind: "done", digest, objects };
  } catch (error) {
    return { kind: "failed", ...failureOf(error) };
  }
}

/** Failures that say nothing about the input, and pass when an operator has acted. */
const isOurs: ReadonlySet<string> = new Set(["BlobNotFound", "KubectlNotFound"]);

function failureOf(error: unknown): Omit<Extract<Outcome, { kind: "failed" }>, "kind"> {
  const message = errorMessage(error).slice(0, MAX_MESSAGE_LENGTH);
  if (!(error instanceof StarlingError)) return { failure: { code: "Internal", message, permanent: false } };
  const permanent = error.retry === "permanent" && !isOurs.has(error.code);
  const strike = error.data.strike === true ? ({ strike: true } as const) : {};
  return { failure: { code: error.code, message, permanent }, ...strike };
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
  if (next.failure !== undefined) {
    const { code, message, permanent } = next.failure;
    ports.log.warn("rendering failed", { input: row.input, path: row.path, code, error: message, permanent });
  }
  if (next.state !== "Pending") await tell(row.waiting ?? [], ports);
}

function settled(row: RenderingRow, outcome: Outcome, now: Date): RenderingRow {
  const {
    claim: _claim,
    dueShard: _shard,
    dueKey: _key,
    dispatches: _dispatches,
    failure: _failure,
    restsUntil: _rest,
    ...rest
  } = row;
  const next = { ...rest, version: row.version + 1 };
  if (outcome.kind === "done") {
    // How often it took is nobody's business any more.
    const { waiting: _waiting, strikes: _strikes, ...done } = next;
    return { ...done, state: "Done", digest: outcome.digest, objects: outcome.objects };
  }
  const { failure, strike } = outcome;
  if (failure.permanent) {
    const { waiting: _waiting, ...failed } = next;
    return { ...failed, state: "Failed", failure };
  }
  const strikes = (row.strikes ?? 0) + (strike === true ? 1 : 0);
  const counted = strikes === 0 ? next : { ...next, strikes };
  if (strikes < MAX_STRIKES)
    return { ...counted, failure, ...dueAttributes(row, later(now, backoffSeconds(row.tries))) };
  const restsUntil = later(now, restSeconds(strikes - MAX_STRIKES + 1));
  const told = { ...failure, message: `${failure.message} (${adviceOf(row.tries, restsUntil)})` };
  return { ...counted, state: "Failed", failure: told, restsUntil, ...dueAttributes(row, restsUntil) };
}

function adviceOf(tries: number, restsUntil: string): string {
  return (
    `tried ${tries} times; it is tried again at ${restsUntil}, and by \`starling reconcile\` of what uses it; ` +
    "if that goes on, make the folder smaller, or split it into several templates"
  );
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
