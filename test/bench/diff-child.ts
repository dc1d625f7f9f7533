/** The work of `starling diff` on a cluster as a process. Its start counts, like kubectl's. */
import { readFile } from "node:fs/promises";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import { parseJson } from "#shared/base/json.ts";
import { diffSet } from "#shared/kube/engine/diff-set.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import type { ClusterAddress } from "#test/bench/children.ts";
import { endpointOf } from "#test/support/cluster-fixture.ts";

export interface DiffTask {
  readonly address: ClusterAddress;
  readonly setId: string;
  readonly objects: readonly ManifestObject[];
}

const { address, setId, objects } = parseJson(await readFile(process.argv[2] ?? "", "utf8")) as unknown as DiffTask;
const connection = new KubeConnection(endpointOf(address));
const client = connection.client({ deadlineMs: Date.now() + 60_000 });
const found = await diffSet(client, { setId, objects, groupKinds: [], prune: true });
connection.close();
process.stdout.write(`${found.differences.length}\n`);
