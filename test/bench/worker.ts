import { randomUUID } from "node:crypto";
import { CreateSecretCommand } from "@aws-sdk/client-secrets-manager";
import { applyEnv } from "#functions/apply/env.ts";
import { wireApply } from "#functions/apply/wire.ts";
import { createLambdaContext } from "#local/aws/lambda/lambda-context.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { clusterSecret } from "#shared/fleet/cluster-secret.ts";
import { keys, stateIndex } from "#shared/fleet/rows/keys.ts";
import { tokensOf } from "#shared/fleet/rows/lineage.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type Inventory, readInventory } from "#shared/kube/inventory.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";
import { type AwsClients, awsClients } from "#shared/lambda/aws-clients.ts";
import type { SqsHandler } from "#shared/lambda/sqs-handler.ts";
import { encodeRendering } from "#shared/source/rendering.ts";
import type { AwsAddresses, ClusterAddress } from "#test/bench/children.ts";

const namespace = "bench";
/** The timeout of the apply function in the control stack. */
const timeoutSeconds = 300;
/** More than the Sync's interval of an hour with its jitter. */
const intervalsPassedMs = 7_200_000;

/**
 * One cluster's worker: the whole apply function before the emulators, and the rows that others write for it. Only
 * `invoke` is what the function does; everything else belongs to the planner and is not to be measured.
 */
export class BenchWorker {
  readonly setId: string;
  /** For the function's own code in a process of its own. */
  readonly processEnvironment: Readonly<Record<string, string>>;
  readonly #name: string;
  readonly #cluster: string;
  readonly #aws: AwsClients;
  readonly #table: DynamoTable;
  readonly #blobs: S3BlobStore;
  readonly #handler: SqsHandler;

  /** @param more.aws - clients of the address that others use, too, and close. */
  constructor(
    address: AwsAddresses,
    name: string,
    { cluster = "bench", aws = awsClients(address) }: { readonly cluster?: string; readonly aws?: AwsClients } = {},
  ) {
    this.#name = name;
    this.#cluster = cluster;
    this.#aws = aws;
    this.#table = new DynamoTable(this.#aws.dynamo, address.table);
    this.#blobs = new S3BlobStore(this.#aws.s3, address.bucket);
    this.setId = setIdOf({ syncNamespace: namespace, syncName: name });
    this.#handler = wireApply(applyEnv.parse(address.environment), this.#aws);
    this.processEnvironment = { ...address.environment, ...sdkEnvironment(address) };
  }

  /** Makes the cluster known, as `api` would. */
  async register({ server, caData, token }: Omit<ClusterAddress, "uid">): Promise<void> {
    const cluster = this.#cluster;
    const secret = `starling/clusters/${cluster}`;
    await this.#aws.secrets.send(
      new CreateSecretCommand({ Name: secret, SecretString: clusterSecret({ server, caData, token }) }),
    );
    const row: ClusterRow = {
      ...keys.cluster(cluster),
      type: "Cluster",
      schema: rowSchema,
      version: 1,
      uid: randomUUID(),
      name: cluster,
      labels: {},
      annotations: {},
      generation: 1,
      createdAt: new Date().toISOString(),
      spec: { endpoint: { server, caData, token: { secret } } },
      operations: {},
      status: { conditions: [] },
    };
    await this.#table.write([{ put: row }]);
  }

  /** A new attempt at these objects, as the planner would assign it. */
  async assign(objects: readonly ManifestObject[], drift: "correct" | "report" = "correct"): Promise<void> {
    const { digest, bytes } = encodeRendering(objects);
    await this.#blobs.overwrite(blobKeys.rendering(digest), bytes);
    const before = await this.#row();
    const owner = { namespace, kind: "Sync", name: this.#name } as const;
    const row: SyncRow = {
      ...before,
      ...this.#key(),
      type: "SyncOnCluster",
      schema: rowSchema,
      version: (before?.version ?? 0) + 1,
      cluster: this.#cluster,
      namespace,
      name: this.#name,
      uid: `bench-${this.#name}`,
      owner,
      ownerUid: "uid-of-the-owner",
      desired: {
        action: "apply",
        token: `token-${before?.version ?? 0}`,
        ...(before === undefined ? {} : { earlier: tokensOf(before) }),
        attempt: (before?.desired.attempt ?? 0) + 1,
        revision: `main@${digest}`,
        renderDigest: digest,
        apply: { prune: true, drift, interval: "1h" },
        rollout: 1,
        assignedAt: new Date().toISOString(),
      },
      statePk: stateIndex.pk(owner),
      stateSk: stateIndex.sk("Assigned", { cluster: this.#cluster, name: this.#name }),
    };
    await this.#table.write([{ put: row, ...(before === undefined ? {} : { when: { version: before.version } }) }]);
  }

  /** Makes the Sync due for a check, as `starling reconcile` does. */
  async requestCheck(): Promise<void> {
    const before = await this.#row();
    if (before === undefined) throw new Error(`the Sync ${this.#name} was never assigned`);
    const row: SyncRow = { ...before, version: before.version + 1, reconcile: (before.reconcile ?? 0) + 1 };
    await this.#table.write([{ put: row, when: { version: before.version } }]);
  }

  /** Makes the Sync due for a routine check: moves its last check back by more than its interval. */
  async passInterval(): Promise<void> {
    const before = await this.#row();
    if (before?.observed === undefined) throw new Error(`the Sync ${this.#name} was never checked`);
    const at = new Date(Date.parse(before.observed.at) - intervalsPassedMs).toISOString();
    const row: SyncRow = { ...before, version: before.version + 1, observed: { ...before.observed, at } };
    await this.#table.write([{ put: row, when: { version: before.version } }]);
    // It is then reckoned from the row.
    await this.#table.update({ update: keys.lease(this.#cluster), remove: ["routine"] });
  }

  /** One invocation for the cluster. */
  async invoke(): Promise<void> {
    const { batchItemFailures } = await this.#handler(
      workerEvent(this.#cluster),
      createLambdaContext({ functionName: "apply", timeoutSeconds }),
    );
    if (batchItemFailures.length > 0) throw new Error("the apply function gave its message back");
  }

  async observed(): Promise<Observed> {
    const observed = (await this.#row())?.observed;
    if (observed === undefined) throw new Error(`the Sync ${this.#name} was never checked`);
    return observed;
  }

  /** The deaths of workers that are recorded for the Sync. */
  async deaths(): Promise<SyncRow["deaths"]> {
    return (await this.#row())?.deaths;
  }

  /** @throws Error unless the newest attempt was carried out whole. */
  async checkApplied(): Promise<void> {
    const row = await this.#row();
    const { applied, phase, reason, message, problems } = await this.observed();
    if (applied?.attempt === row?.desired.attempt && applied?.renderDigest === row?.desired.renderDigest) return;
    throw new Error(`not applied: ${phase}, ${reason}: ${message} ${JSON.stringify(problems.slice(0, 3))}`);
  }

  async inventory(): Promise<Inventory> {
    const digest = (await this.observed()).inventory;
    if (digest === undefined) throw new Error(`the Sync ${this.#name} has no inventory`);
    const bytes = await this.#blobs.get(blobKeys.inventory(this.#cluster, digest));
    return readInventory(Buffer.from(bytes).toString("utf8"), this.setId);
  }

  close(): void {
    const { dynamo, sqs, s3, secrets } = this.#aws;
    for (const client of [dynamo, sqs, s3, secrets]) client.destroy();
  }

  #key() {
    return keys.sync(this.#cluster, namespace, this.#name);
  }

  #row(): Promise<SyncRow | undefined> {
    return this.#table.get(this.#key());
  }
}

function sdkEnvironment({ region, credentials, endpoints }: AwsAddresses) {
  return {
    AWS_REGION: region,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    AWS_ENDPOINT_URL_DYNAMODB: endpoints.dynamo,
    AWS_ENDPOINT_URL_SQS: endpoints.sqs,
    AWS_ENDPOINT_URL_S3: endpoints.s3,
    AWS_ENDPOINT_URL_SECRETS_MANAGER: endpoints.secrets,
  };
}

/** The event of a message that the cluster has work. */
export function workerEvent(cluster = "bench") {
  const body = JSON.stringify({ to: "apply", cluster });
  // Too often to come back by itself: what is next is sent.
  const attributes = { ApproximateReceiveCount: "9" };
  return { Records: [{ messageId: randomUUID(), receiptHandle: randomUUID(), body, attributes }] };
}
