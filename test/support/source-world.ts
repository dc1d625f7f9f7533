import type { OwnRole } from "#functions/resolve/aws-login.ts";
import { resolveSource } from "#functions/resolve/resolve.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { GuardedHttpRemote } from "#shared/adapters/net/guarded-http-remote.ts";
import { unpackArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { hexOf, sha256 } from "#shared/base/digest.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Condition, SourceRow, Upload } from "#shared/fleet/rows/object-rows.ts";
import { firstVersion, rowSchema } from "#shared/fleet/rows/row.ts";
import type { BucketRules } from "#shared/fleet/source-buckets.ts";
import { withUpload } from "#shared/fleet/sources/uploads.ts";
import type { ResolveMessage } from "#shared/messages.ts";
import type { BucketReader, EventBus, GitRemote, HttpRemote, SecretReader, Table } from "#shared/ports.ts";
import type { ListedFile } from "#shared/source/tree-listing.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { noBuckets } from "#test/support/no-buckets.ts";
import { noRole } from "#test/support/no-role.ts";

const usual = { namespace: "shop", name: "app" };

const noGit: GitRemote = {
  listRefs: ({ url }) => Promise.reject(new Error(`nothing should list ${url}`)),
  fetchTree: ({ url }) => Promise.reject(new Error(`nothing should fetch ${url}`)),
};

/** One Source in a table and a storage in memory, resolved by the real code against a server on loopback. */
export class SourceWorld {
  readonly table: MemoryTable;
  readonly blobs: MemoryBlobStore;
  readonly sender = new MemorySender();
  readonly errors: string[] = [];
  readonly secrets = new Map<string, string>();
  readSecret: SecretReader["read"] = async (name) => this.secrets.get(name) ?? "";
  git: GitRemote = noGit;
  /** Stands between the resolve function and the table. */
  watch: (table: Table) => Table = (table) => table;
  http: HttpRemote = new GuardedHttpRemote({ rules: addressRules("127.0.0.1") });
  buckets: BucketReader = noBuckets.buckets;
  bucketRules: BucketRules = noBuckets.bucketRules;
  role: OwnRole = noRole;
  bus: EventBus | undefined;
  now = new Date("2026-03-01T10:00:00.000Z");
  /** Time until an invocation is killed. */
  remainingMs: () => number = () => 180_000;

  readonly #source: typeof usual;
  readonly #uid: string;
  readonly #key: ReturnType<typeof keys.object<"Source">>;

  /** @param table - of another world, whose Source this one replaces. */
  constructor(
    table = new MemoryTable(),
    {
      source = usual,
      blobs,
      uid = "u1",
    }: { readonly source?: typeof usual; readonly blobs?: MemoryBlobStore; readonly uid?: string } = {},
  ) {
    this.table = table;
    this.blobs = blobs ?? new MemoryBlobStore(() => this.now);
    this.#source = source;
    this.#uid = uid;
    this.#key = keys.object(source.namespace, "Source", source.name);
  }

  /** Writes the Source, or its next generation. */
  async put(spec: unknown): Promise<void> {
    const before = await this.table.get(this.#key);
    const row: SourceRow = {
      ...this.#key,
      ...this.#source,
      type: "Source",
      schema: rowSchema,
      version: before === undefined ? firstVersion(this.now) : before.version + 1,
      uid: this.#uid,
      labels: {},
      annotations: {},
      generation: (before?.generation ?? 0) + 1,
      createdAt: this.now.toISOString(),
      spec: sourceSpec.parse(spec),
      operations: before?.operations ?? {},
      status: before?.status ?? { conditions: [] },
    };
    await this.table.write([{ put: row }]);
  }

  /** Records a version that CI pushed, as the API does. */
  async push(version: string, bytes: Uint8Array): Promise<void> {
    const row = await this.row();
    const act = { number: 0, by: "ci", at: this.now.toISOString() };
    const upload: Upload = { ...act, version, sha256: hexOf(sha256(bytes)), id: version };
    await this.blobs.overwrite(blobKeys.upload(this.#source, upload.id), bytes);
    const uploads = withUpload(row.operations.uploads ?? [], upload, "newest");
    const next: SourceRow = { ...row, version: row.version + 1, operations: { ...row.operations, uploads } };
    await this.table.write([{ put: next }]);
  }

  /** Records that a person asks for a poll. */
  async reconcile(): Promise<void> {
    const row = await this.row();
    const number = (row.operations.reconcile?.number ?? 0) + 1;
    const reconcile = { number, by: "ana", at: this.now.toISOString() };
    const next: SourceRow = { ...row, version: row.version + 1, operations: { ...row.operations, reconcile } };
    await this.table.write([{ put: next }]);
  }

  async resolve(more: Partial<ResolveMessage & { readonly receives: number }> = {}): Promise<SourceRow> {
    const { blobs, sender, git, http, buckets, bucketRules } = this;
    const ports = {
      ...{ table: this.watch(this.table), blobs, sender, git, http, buckets, bucketRules },
      secrets: { read: this.readSecret },
      role: this.role,
      events: this.bus && { bus: this.bus, installation: "starling.111122223333.eu-west-1" },
      clock: { now: () => this.now },
      ids: randomIds,
      log: {
        info: () => {},
        warn: () => {},
        error: (text: string, fields?: object) => void this.errors.push(`${text}: ${JSON.stringify(fields)}`),
      },
    };
    await resolveSource({ to: "resolve", source: this.#source, ...more }, ports, {
      getRemainingTimeInMillis: () => this.remainingMs(),
    });
    return this.row();
  }

  async row(): Promise<SourceRow> {
    const row = await this.table.get(this.#key);
    if (row === undefined) throw new Error("the Source is gone");
    return row;
  }

  /** The condition Ready after a poll. */
  async ready(): Promise<Condition | undefined> {
    const { status } = await this.resolve();
    return status.conditions.find(({ type }) => type === "Ready");
  }

  /** The stored files of the Source's artifact. */
  async files(): Promise<readonly ListedFile[]> {
    const digest = (await this.table.get(this.#key))?.status.artifact?.digest ?? "";
    return unpackArtifact(await this.blobs.get(blobKeys.artifact(digest)), digest);
  }

  /** Days pass, and the storage forgets every blob that nobody kept. */
  passDays(days: number): void {
    this.now = new Date(this.now.getTime() + days * 86_400_000);
    this.blobs.expire(60);
  }
}
