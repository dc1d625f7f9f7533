/**
 * Signs URLs by which permitted callers read renderings and artifacts directly: only those that the owner's rows refer
 * to.
 */
import { findArtifact } from "#functions/api/read/find-artifact.ts";
import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { HeadedAnswer } from "#functions/api/request/headed-answer.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { digestHeader, type LinkedArtifact } from "#shared/fleet/api/artifact-item.ts";
import { blobKeys, linkSeconds } from "#shared/fleet/blob-keys.ts";
import { ownerFields } from "#shared/fleet/log-fields.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { keys, type Owner, ranges } from "#shared/fleet/rows/keys.ts";
import { isNewer, keyText } from "#shared/fleet/rows/row.ts";
import { renderingsNamed } from "#shared/fleet/rows/sync-row.ts";
import type { BlobLinks, Table } from "#shared/ports.ts";

type LinkPorts = Pick<ApiPorts, "table" | "links" | "log">;

/** URLs by digest. */
type Links = Readonly<Record<string, string>>;

/** A rendering as the list of the fleet named it. When several entries have one digest, one that still exists suffices. */
export interface RenderingOnCluster {
  readonly digest: string;
  readonly cluster: string;
  /** `shop.web` for a group, or the name of the Sync. */
  readonly sync: string;
}

export interface RenderingsRequest {
  readonly owner: Owner;
  readonly renderings: readonly RenderingOnCluster[];
  readonly caller: Caller;
}

/**
 * Signs URLs of renderings, for some minutes. Nothing is masked in them, so the caller is logged.
 * @throws StarlingError `NewerRow`; `NotFound` for an owner that does not exist, and for a rendering that its Syncs do
 *   not refer to.
 */
export async function linkRenderings(
  { table, links, log }: LinkPorts,
  { owner, renderings, caller }: RenderingsRequest,
): Promise<{ readonly renderings: Links }> {
  const { namespace, kind, name } = owner;
  const row = await table.get(keys.object(namespace, kind, name));
  if (row === undefined) throw refusal("NotFound", `${kind} ${namespace}/${name} does not exist`);
  const asked = new Map(
    renderings.map(({ cluster, sync }) => {
      const key = keys.sync(cluster, namespace, sync);
      return [keyText(key), key];
    }),
  );
  const rows = await table.getMany([...asked.values()], { newer: "kept" });
  const readable = rows.filter((one) => !isNewer(one));
  const own = readable.filter((one) => one.owner.kind === kind && one.owner.name === name);
  const owned = new Map(own.map((one) => [keyText(one), renderingsNamed(one)]));
  const missing = new Map(renderings.map((one) => [one.digest, one]));
  for (const { digest, cluster, sync } of renderings) {
    if (owned.get(keyText(keys.sync(cluster, namespace, sync)))?.has(digest) === true) missing.delete(digest);
  }
  const [first] = missing.values();
  if (first !== undefined) {
    const place = `Sync ${namespace}/${first.sync} on cluster ${first.cluster}`;
    throw refusal("NotFound", `${place} of ${kind} ${name} has no rendering ${first.digest}; read the fleet again`);
  }
  const digests = [...new Set(renderings.map(({ digest }) => digest))];
  const answer = { renderings: await linked(links, digests, blobKeys.rendering) };
  log.info("contents handed out", { ...ownerFields(owner), principal: caller.principal, renderings: digests });
  return answer;
}

export interface ArtifactsRequest {
  readonly source: { readonly namespace: string; readonly name: string };
  /** Digests. */
  readonly artifacts: readonly string[];
  readonly caller: Caller;
}

/**
 * Signs URLs of artifacts, for some minutes; the caller is logged.
 * @throws StarlingError `NewerRow`; `NotFound` for a Source that does not exist, and for an artifact that it did not
 *   have within 30 days.
 */
export async function linkArtifacts(
  { table, links, log }: LinkPorts,
  { source, artifacts, caller }: ArtifactsRequest,
): Promise<{ readonly artifacts: Links }> {
  const { namespace, name } = source;
  const about = `Source ${namespace}/${name}`;
  const row = await table.get(keys.object(namespace, "Source", name));
  if (row === undefined) throw refusal("NotFound", `${about} does not exist`);
  const missing = new Set(artifacts);
  missing.delete(row.status.artifact?.digest ?? "");
  await leaveOutFormer(table, source, missing);
  const [first] = missing;
  if (first !== undefined) {
    const next = `see: starling history source/${name} -n ${namespace}`;
    throw refusal("NotFound", `${about} has no artifact ${first}, and had none in 30 days; ${next}`);
  }
  const answer = { artifacts: await linked(links, artifacts, blobKeys.artifact) };
  log.info("contents handed out", { kind: "Source", namespace, name, principal: caller.principal, artifacts });
  return answer;
}

export interface ArtifactRequest {
  readonly source: { readonly namespace: string; readonly name: string };
  readonly reference: string;
  readonly caller: Caller;
}

/** Finds an artifact, and signs a URL of it for some minutes; the caller is logged. @throws StarlingError as `findArtifact`. */
export async function linkArtifact(
  { table, links, log, clock }: LinkPorts & Pick<ApiPorts, "clock">,
  { source, reference, caller }: ArtifactRequest,
): Promise<HeadedAnswer> {
  const found = await findArtifact({ table, clock }, source, reference);
  const urlExpiresAt = later(clock.now(), linkSeconds);
  const url = await links.link(found.key);
  const { namespace, name } = source;
  const artifacts = [found.digest];
  log.info("contents handed out", { kind: "Source", namespace, name, principal: caller.principal, artifacts });
  const body: LinkedArtifact = { ...found, url, urlExpiresAt };
  return new HeadedAnswer(body, { [digestHeader]: found.digest });
}

/** Former artifacts count as well, and those at which templates stay; the newest are requested most. */
async function leaveOutFormer(table: Table, source: ArtifactsRequest["source"], missing: Set<string>): Promise<void> {
  if (missing.size === 0) return;
  const query = { ...ranges.revisions(source), newestFirst: true, newer: "kept" } as const;
  for await (const row of allItems((start) => table.query({ ...query, ...start }))) {
    if (!isNewer(row)) missing.delete(row.artifact.digest);
    if (missing.size === 0) return;
  }
  const pins = { ...ranges.pins(source), newer: "kept" } as const;
  for await (const row of allItems((start) => table.query({ ...pins, ...start }))) {
    if (!isNewer(row)) missing.delete(row.artifact?.digest ?? "");
  }
}

async function linked(links: BlobLinks, digests: readonly string[], keyOf: (digest: string) => string): Promise<Links> {
  return Object.fromEntries(
    await Promise.all(digests.map(async (digest) => [digest, await links.link(keyOf(digest))] as const)),
  );
}
