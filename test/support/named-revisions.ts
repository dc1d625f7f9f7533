/** A Sync of `shop` that stays at a revision of a Source, written as the API does, and the row of the revision. */
import { documentChange } from "#functions/api/write/object-change.ts";
import { unpackArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { parseDocument } from "#shared/fleet/kinds/document.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { PinRow } from "#shared/fleet/rows/pin-row.ts";
import type { Message } from "#shared/messages.ts";
import type { SourceWorld } from "#test/support/source-world.ts";

const namespace = "shop";

interface Named {
  /** `app` when it is left out. */
  readonly source?: string;
  /** Name of the Sync, `web` when it is left out. */
  readonly sync?: string;
}

/** @returns the messages of the write. */
export async function nameRevision(
  world: SourceWorld,
  revision: string | undefined,
  { source = "app", sync = "web" }: Named = {},
): Promise<readonly Message[]> {
  const parsed = parseDocument({
    apiVersion: "starling.dev/v1alpha1",
    kind: "Sync",
    metadata: { name: sync, namespace },
    spec: { cluster: "one", source, path: ".", ...(revision === undefined ? {} : { revision }) },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed));
  const before = await world.table.get(keys.object(namespace, "Sync", sync));
  const change = documentChange(before, parsed.document, { now: world.now, uid: sync });
  await world.table.write(change.writes);
  return change.messages;
}

/** The function looks for a revision that a Sync names. */
export async function pollRevision(
  world: SourceWorld,
  revision: string,
  { source = "app" }: Named = {},
): Promise<PinRow | undefined> {
  await world.resolve({ pin: revision });
  return world.table.get(keys.pin({ namespace, name: source }, revision));
}

/** A Sync names the revision, and the function looks for it. */
export async function findRevision(world: SourceWorld, revision: string, named?: Named): Promise<PinRow | undefined> {
  await nameRevision(world, revision, named);
  return pollRevision(world, revision, named);
}

/** The texts of its artifact by path. */
export async function textsOfRevision(
  { blobs }: SourceWorld,
  row: PinRow | undefined,
): Promise<Readonly<Record<string, string>>> {
  const { digest = "" } = row?.artifact ?? {};
  const files = await unpackArtifact(await blobs.get(blobKeys.artifact(digest)), digest);
  return Object.fromEntries(files.map(({ path, content }) => [path, Buffer.from(content).toString()]));
}
