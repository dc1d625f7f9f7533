import { isLostRendering, keepRendering } from "#functions/render/old-rendering.ts";
import { endTurn, type RenderTurn, type TurnPorts, takeTurn } from "#functions/render/render-turns.ts";
import { replaceRow } from "#functions/render/replace-row.ts";
import { maxStrikes, type RenderOutcome, settledRendering } from "#functions/render/settled-rendering.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { ownerFields } from "#shared/fleet/log-fields.ts";
import { due, later } from "#shared/fleet/rows/due.ts";
import { keys, type Owner } from "#shared/fleet/rows/keys.ts";
import type { RenderingRow, SourceRef } from "#shared/fleet/rows/rollout-rows.ts";
import { type Message, ownerKey, type RenderMessage } from "#shared/messages.ts";
import type { BlobStore, Builder, Ids } from "#shared/ports.ts";

export interface RenderPorts extends TurnPorts {
  readonly blobs: BlobStore;
  readonly builder: Builder;
  readonly ids: Ids;
}

/** Seconds of a claim; longer than a rendering may take, so that no second one starts beside it. */
const claimSeconds = 120;
const maxMessageLength = 2000;
/** Number of Sources that are remembered for each artifact; any one of them can restore it. */
const maxSources = 10;

/**
 * Renders one distinct input once. The worker that claims the row does the work; other owners are recorded in the row and
 * are informed together. A claim that has expired belongs to a worker that died, and is taken over. If two workers render
 * after all, they store equal bytes. A failure that may not be the input's fault is tried again, with a growing back-off.
 * A rendering is kept for as long as owners request it, and made again when its bytes are lost. When an artifact is lost,
 * the Sources that may have it are asked to fetch it again.
 */
export async function renderInput(message: RenderMessage, ports: RenderPorts): Promise<void> {
  const claimed = await claim(message, ports);
  if (claimed === undefined) return;
  const { row, died, turn } = claimed;
  const from = ports.clock.now();
  const outcome = died && (row.strikes ?? 0) >= maxStrikes ? neverEnded : await renderClaimed(row, ports);
  await endTurn(row, { turn, from, to: ports.clock.now() }, ports);
  await finish({ claimed: row, outcome, notify: message.notify }, ports);
}

interface Claimed {
  readonly row: RenderingRow;
  /** The worker that held the claim before began, and never reported how it ended. */
  readonly died: boolean;
  readonly turn: RenderTurn;
}

/** @returns undefined when nothing has to be rendered: the rendering is done, in work, or was never requested. */
async function claim(message: RenderMessage, ports: RenderPorts): Promise<Claimed | undefined> {
  const now = ports.clock.now();
  const row = await ports.table.get(keys.rendering(message.input));
  if (row === undefined) return undefined;
  const isToMake = row.state === "Pending" || hasRested(row, now) || (await isLostRendering(row, message, ports));
  const kept = isToMake ? "gone" : await keepRendering(row, ports);
  if (kept === "without artifact") await askForArtifact(row, ports);
  if (kept !== "gone") {
    // The worker that missed it finds it at its next check.
    if (row.digest === undefined || row.digest !== message.lost) await report(withWaiting([], message.notify), ports);
    return undefined;
  }
  const waiting = withWaiting(row.waiting ?? [], message.notify);
  const sources = [message.source ?? [], message.besides ?? []].flat().reduce(withSource, row.sources ?? []);
  const isClaimed = row.claim !== undefined && row.claim.until > now.toISOString();
  const died = row.claim !== undefined && !isClaimed;
  const until = later(now, claimSeconds);
  // A thousand clusters may miss it: a rendering that was tried just now is tried again when it is due.
  const isTried = row.state === "Pending" && row.failure !== undefined && message.lost !== undefined;
  const turn = isClaimed || isTried ? "later" : await takeTurn({ ...row, sources }, until, ports);
  const busy = turn === "later";
  if (busy && waiting.length === (row.waiting ?? []).length) return undefined;
  const next: RenderingRow = busy
    ? { ...row, waiting, sources, version: row.version + 1 }
    : {
        ...due(row, until, row.dispatches),
        ...(row.state === "Done" ? { losses: (row.losses ?? 0) + 1 } : {}),
        state: "Pending",
        waiting,
        sources,
        claim: { by: ports.ids.unique(), until },
        // The deadline runs from here over all tries; a rendering that was finished before begins again.
        begunAt: (row.state === "Pending" ? row.begunAt : undefined) ?? now.toISOString(),
        tries: row.state === "Done" ? 1 : row.tries + 1,
        ...(died ? { strikes: (row.strikes ?? 0) + 1 } : {}),
        version: row.version + 1,
      };
  const written = await replaceRow(ports.table, row, next);
  // Another writer changed the row: it is read again.
  if (!written) return claim(message, ports);
  return busy ? undefined : { row: next, died, turn };
}

/** True when the rendering failed and is due again. */
function hasRested({ retryAt }: RenderingRow, now: Date): boolean {
  return retryAt !== undefined && retryAt <= now.toISOString();
}

/** Counts the worker that died when its claim is taken over. */
const neverEnded: RenderOutcome = {
  kind: "failed",
  failure: { code: "RenderNeverEnded", message: "it began and never ended", permanent: false },
};

async function renderClaimed(row: RenderingRow, ports: RenderPorts): Promise<RenderOutcome> {
  try {
    const { artifactDigest, path, render: options, specialise, claim } = row;
    if (claim === undefined) throw new Error("a rendering that nobody claimed");
    const request = { artifactDigest, path, ...defined({ render: options, specialise }), attempt: claim.by };
    const { digest, objects, leftOut, bytes } = await ports.builder.build(request);
    // The bytes in the store may be old or damaged, so they are overwritten.
    await ports.blobs.overwrite(blobKeys.rendering(digest), bytes);
    return { kind: "done", digest, objects, leftOut };
  } catch (error) {
    return { kind: "failed", ...failureOf(error, row) };
  }
}

/** Errors of an artifact that is missing or damaged. */
const artifactCodes: ReadonlySet<string> = new Set(["TransferFailed", "BlobNotFound", "ArtifactInvalid"]);
/** Failures that do not depend on the input, and end when somebody acts. */
const isOurs: ReadonlySet<string> = new Set([...artifactCodes, "KubectlNotFound"]);

function failureOf(error: unknown, row: RenderingRow): Omit<Extract<RenderOutcome, { kind: "failed" }>, "kind"> {
  const isArtifact = error instanceof StarlingError && artifactCodes.has(error.code);
  const message = `${errorMessage(error)}${isArtifact ? artifactAdvice(row) : ""}`.slice(0, maxMessageLength);
  if (!(error instanceof StarlingError)) return { failure: { code: "Internal", message, permanent: false } };
  const permanent = error.retry === "permanent" && !isOurs.has(error.code);
  const strike = error.data.strike === true ? ({ strike: true } as const) : {};
  return { failure: { code: error.code, message, permanent }, ...strike };
}

function artifactAdvice({ artifactDigest, sources = [] }: RenderingRow): string {
  const from = sources.filter(({ besides }) => besides === undefined).map(sourceText);
  const values = sources.filter(({ besides }) => besides !== undefined).map(sourceText);
  const others = values.length === 0 ? "" : `, and its values' of ${values.join(" and of ")}`;
  const again = `the artifact ${artifactDigest} of ${from.join(", or of ") || "an unknown Source"} is fetched again${others}`;
  return `; ${again}; resume the Source where it is suspended, and where git has it no more, push a commit that the Source follows: it is rolled out in its place`;
}

function sourceText({ namespace, name, revision }: SourceRef): string {
  return [`Source ${name} in namespace ${namespace}`, ...(revision === undefined ? [] : [`at ${revision}`])].join(" ");
}

interface Finished {
  readonly claimed: RenderingRow;
  readonly outcome: RenderOutcome;
  readonly notify: Owner | undefined;
}

/** Writes the result and informs every owner that waits; a failure that may pass is tried again later, with its reason in the row. */
async function finish(finished: Finished, ports: RenderPorts): Promise<void> {
  const { claimed, outcome } = finished;
  const row = await ports.table.get(keys.rendering(claimed.input));
  if (row === undefined || row.state !== "Pending" || row.claim?.by !== claimed.claim?.by) {
    await report(withWaiting([], finished.notify), ports);
    return;
  }
  const next = settledRendering(row, outcome, ports.clock.now());
  const [first] = row.waiting ?? [];
  const about = { ...(first && ownerFields(first)), input: row.input, path: row.path };
  if (!(await replaceRow(ports.table, row, next))) return finish(finished, ports);
  if (next.failure !== undefined) {
    const { code, message, permanent } = next.failure;
    ports.log.warn("rendering failed", { ...about, code, error: message, permanent });
  } else ports.log.info("rendered", { ...about, objects: next.objects, ...defined({ leftOut: next.leftOut }) });
  if (next.state !== "Pending") await report(row.waiting ?? [], ports);
  if (next.state === "Pending" && artifactCodes.has(next.failure?.code ?? "")) await askForArtifact(row, ports);
}

function withWaiting(waiting: readonly Owner[], owner: Owner | undefined): readonly Owner[] {
  if (owner === undefined || waiting.some((other) => ownerKey(other) === ownerKey(owner))) return waiting;
  return [...waiting, owner];
}

/** The newest Source comes last: the others may be deleted by now. */
function withSource(sources: readonly SourceRef[], source: SourceRef): readonly SourceRef[] {
  const [same, others] = [
    sources.filter(({ besides }) => besides === source.besides),
    sources.filter(({ besides }) => besides !== source.besides),
  ];
  const kept = same.filter(({ namespace, name }) => namespace !== source.namespace || name !== source.name);
  return [...others, ...[...kept, source].slice(-maxSources)];
}

async function report(owners: readonly Owner[], ports: RenderPorts): Promise<void> {
  if (owners.length === 0) return;
  await ports.sender.send(owners.map((owner) => ({ to: "rollout", owner, clusters: [] })));
}

/** Asks every Source of the artifacts; each Source checks whether its own artifact is lost. */
async function askForArtifact({ sources = [], artifactDigest }: RenderingRow, ports: RenderPorts): Promise<void> {
  const messages = sources.map(({ revision, besides: lost = artifactDigest, ...source }): Message => {
    return { to: "resolve", source, lost, ...defined({ revision }) };
  });
  await ports.sender.send(messages);
}
