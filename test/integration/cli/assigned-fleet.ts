/** A fleet with the assignments of a group: the rows that functions write, and their renderings. */
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { applyOptions } from "#shared/fleet/kinds/sync-template.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import type { Applied, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { encodeRendering } from "#shared/source/rendering.ts";
import type { CliFixture } from "#test/integration/cli/cli-fixture.ts";
import { rolloutStateRow, syncRow } from "#test/unit/functions/api/row-fixture.ts";

const revision = `main@sha1:${"9f2c1ab".padEnd(40, "0")}`;

export interface AssignedCluster {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly values?: Readonly<Record<string, string>>;
  /** The digest of the assigned rendering; absent if there is no assignment yet. */
  readonly assigned?: string;
  /** "never": the last assigned rendering was never applied completely. */
  readonly applied?: "never" | Pick<Applied, "event">;
}

/** Stores a rendering in the form of `build`. @returns its digest. */
export async function storeRendering(
  { blobs }: Pick<CliFixture, "blobs">,
  install: readonly ManifestObject[],
  upgrade: readonly ManifestObject[] = install,
): Promise<string> {
  const { digest, bytes } = encodeRendering(install, upgrade);
  await blobs.overwrite(blobKeys.rendering(digest), bytes);
  return digest;
}

/** Discovered clusters, with the assignment of `shop.web` on each. */
export async function assignFleet({ table }: CliFixture, clusters: readonly AssignedCluster[]): Promise<void> {
  await table.write([{ put: rolloutStateRow([]) }]);
  for (const cluster of clusters) {
    const rows: readonly Row[] = [fleetRow(cluster), ...syncRows(cluster)];
    await table.write(rows.map((put) => ({ put })));
  }
}

export function fleetRow({ name, labels = {}, values = {} }: AssignedCluster): FleetRow {
  return {
    ...keys.fleet(name),
    type: "Fleet",
    schema: rowSchema,
    version: 1,
    name,
    uid: `uid-${name}`,
    labels,
    values,
  };
}

export function syncRows({ name, assigned, applied = {} }: AssignedCluster): readonly SyncRow[] {
  if (assigned === undefined) return [];
  const { desired, observed, ...row } = syncRow(name, "shop.web");
  const begun = { ...row, desired: { ...desired, renderDigest: assigned, apply: applyOptions.parse({}) } };
  if (applied === "never" || observed === undefined) return [begun];
  const whole = { renderDigest: assigned, revision, attempt: 2, at: "2026-11-20T07:51:00.000Z", ...applied };
  return [{ ...begun, observed: { ...observed, applied: whole } }];
}

/** The Source of the fixture has been resolved. */
export async function sayArtifact({ table }: CliFixture): Promise<void> {
  const key = keys.object("payments", "Source", "app");
  const row = await table.get(key);
  if (row === undefined) throw new Error("Source app was applied");
  const about = { sizeBytes: 1, files: 1, storedAt: "2026-11-20T07:44:00.000Z", subject: "s", author: "a" };
  const artifact = { ...about, revision, digest: `sha256:${"1".repeat(64)}`, committedAt: "2026-11-20T07:40:00.000Z" };
  await table.write([{ update: key, set: { status: { ...row.status, artifact } } }]);
}
