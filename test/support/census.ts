/** Counts the state of a world: rows in the table, blobs in the bucket, sockets of the process. */
import { ListObjectsV2Command, type ListObjectsV2CommandOutput } from "@aws-sdk/client-s3";
import { defined } from "#shared/base/defined.ts";
import { renewedFolders } from "#shared/fleet/blob-life.ts";
import type { World } from "#test/support/e2e-world.ts";
import { connectionsTo } from "#test/support/processes.ts";

/**
 * The counts leave out everything that expires by itself: rows with a time to live, and blobs in folders with a
 * lifetime that no row names.
 */
export interface Census {
  /** By type of row. */
  readonly rows: Counts;
  /** By folder. */
  readonly blobs: Counts;
  /** Open connections to API servers; on Linux only. */
  readonly connections: number;
}

export type Counts = Readonly<Record<string, number>>;

/** The folder for uploads; its blobs are deleted after a day. */
const passing = "incoming";

export async function takeCensus(world: World): Promise<Census> {
  const rows = (await world.rows()).filter(({ expiresAt }) => expiresAt === undefined);
  const named = JSON.stringify(rows);
  const keys = (await blobKeysOf(world)).filter((key) => {
    const folder = folderOf(key);
    const ends = (renewedFolders as readonly string[]).includes(folder);
    return folder !== passing && (!ends || named.includes(digestIn(key)));
  });
  const ports = world.fleet.connections().map(({ server }) => Number(new URL(server).port));
  return {
    rows: countsOf(rows.map(({ type }) => type)),
    blobs: countsOf(keys.map(folderOf)),
    connections: ports.reduce((sum, port) => sum + connectionsTo(process.pid, port), 0),
  };
}

/** @returns the counts that have grown; none when there is no growth. */
export function growthOf(before: Census, after: Census): readonly string[] {
  const grown = (what: "rows" | "blobs") =>
    Object.entries(after[what])
      .filter(([name, count]) => count > (before[what][name] ?? 0))
      .map(([name, count]) => `${what} ${name}: ${before[what][name] ?? 0} before, ${count} now`);
  const open = after.connections > 0 ? [`${after.connections} connections to API servers are open`] : [];
  return [...grown("rows"), ...grown("blobs"), ...open];
}

async function blobKeysOf({ machine }: World): Promise<readonly string[]> {
  const keys: string[] = [];
  let next: string | undefined;
  do {
    const list = new ListObjectsV2Command({
      Bucket: machine.environment.bucket,
      ...defined({ ContinuationToken: next }),
    });
    const page: ListObjectsV2CommandOutput = await machine.aws.s3.send(list);
    keys.push(...(page.Contents ?? []).flatMap(({ Key }) => Key ?? []));
    next = page.NextContinuationToken;
  } while (next !== undefined);
  return keys;
}

function folderOf(key: string): string {
  return key.split("/")[0] ?? "";
}

/** The digest in the name of a blob. Rows contain it as `sha256:<hex>` or as the whole key. */
function digestIn(key: string): string {
  return /([0-9a-f]{64})\./.exec(key)?.[1] ?? key;
}

function countsOf(names: readonly string[]): Counts {
  const counts = Object.entries(Object.groupBy(names, (name) => name));
  return Object.fromEntries(counts.map(([name, all = []]) => [name, all.length]));
}
