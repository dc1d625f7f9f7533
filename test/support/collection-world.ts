/**
 * The planner, the renderer, the resolver and the workers' memory, over a table and a bucket that delete what has
 * expired, while months pass. The clusters are simulated: they read their assignments and report.
 */
import { renewClusterBlobs } from "#functions/apply/worker/renew-cluster-blobs.ts";
import { renderInput } from "#functions/render/render-input.ts";
import { resolveSource } from "#functions/resolve/resolve.ts";
import { planOwner } from "#functions/rollout/call/plan-owner.ts";
import { claimDue } from "#functions/tick/claim-due.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { sha256 } from "#shared/base/digest.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { blobLifeDays, renewalAt } from "#shared/fleet/blob-life.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { due } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Message, RenderMessage } from "#shared/messages.ts";
import type { BlobStore, Builder, GitRemote, MessageSender, Table } from "#shared/ports.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { noBuckets } from "#test/support/no-buckets.ts";
import { noHttp } from "#test/support/no-http.ts";
import { noRole } from "#test/support/no-role.ts";
import { Crash } from "#test/support/planner-model/disturbed-ports.ts";
import { owner, PlannerWorld, silentLog, silentMetrics } from "#test/support/planner-world.ts";

const hour = 3600;
const day = 86_400;
const source = { namespace: owner.namespace, name: "app" };
const sourceKey = keys.object(source.namespace, "Source", source.name);
/** Fewer checks than in reality, because a check without work costs time and shows nothing. */
const daysBetweenChecks = 5;
/** The limit of messages for one moment. More would be an endless loop. */
const mostMessages = 2000;

/** The process dies before its n-th call, or after it. */
export interface Death {
  readonly at: number;
  readonly when: "before" | "after";
}

interface Ports {
  readonly table: Table;
  readonly blobs: BlobStore;
  readonly sender: MessageSender;
}

export class CollectionWorld {
  readonly made: PlannerWorld;
  readonly blobs: MemoryBlobStore;
  /** The content of each commit. The last commit is the head of the branch. */
  readonly commits: { readonly oid: string; readonly content: string }[] = [];
  /** Clusters that do not answer. */
  readonly unplugged = new Set<string>();
  /** Clusters that refuse every assignment. */
  readonly failing = new Set<string>();
  /** Called for each delivered message. The process survives where it returns undefined. */
  death: () => Death | undefined = () => undefined;
  /** For each Sync, the digests that were assigned since its cluster last accepted one. */
  readonly given = new Map<string, Set<string>>();
  /** Renderings that were assigned to a cluster and were missing in the bucket. */
  readonly missed = new Set<string>();
  #ids = 0;

  constructor() {
    let now = () => new Date(0);
    this.blobs = new MemoryBlobStore(() => now());
    this.made = new PlannerWorld({ table: new MemoryTable({ pageItems: 100 }), blobs: this.blobs });
    now = () => this.made.now;
  }

  async begin(clusters: Readonly<Record<string, string>>, ...group: Parameters<PlannerWorld["setGroup"]>) {
    const git = { url: "https://git.example/app", ref: { branch: "main" } };
    const row = {
      ...sourceKey,
      ...{ type: "Source", schema: rowSchema, version: 1, uid: "uid-app", generation: 1, ...source },
      ...{ labels: {}, annotations: {}, operations: {}, createdAt: this.made.now.toISOString() },
      ...{ spec: sourceSpec.parse({ git }), status: { conditions: [] } },
    } satisfies SourceRow;
    await this.made.table.write([{ put: due(row, this.made.now.toISOString()) }]);
    for (const [name, ring] of Object.entries(clusters)) await this.join(name, ring);
    await this.push("first");
    await this.made.setGroup(...group);
    await this.settle();
    return this;
  }

  async join(name: string, ring: string): Promise<void> {
    await this.made.addCluster(name, ring);
    const createdAt = this.made.now.toISOString();
    const row: ClusterRow = { ...clusterRow(), ...keys.cluster(name), name, uid: name, createdAt };
    await this.made.table.write([{ put: due(row, renewalAt(row)) }]);
  }

  async push(content: string): Promise<void> {
    this.commits.push({ oid: sha256(`${this.commits.length} ${content}`).slice(-40), content });
    await this.made.sender.send([{ to: "resolve", source }]);
  }

  /** Lets time pass without any function running. Only expired data is deleted. */
  standStill(seconds: number): void {
    this.made.advanceClock(seconds);
    this.blobs.expire(blobLifeDays);
    const now = this.made.now.getTime() / 1000;
    const ended = this.made.table.all().filter(({ expiresAt }) => expiresAt !== undefined && expiresAt < now);
    for (const row of ended) void this.made.table.write([{ delete: row }]);
  }

  /** Lets time pass while all functions run now and then. */
  async pass(days: number): Promise<void> {
    for (let passed = 0; passed < days; passed += daysBetweenChecks) {
      this.standStill(Math.min(daysBetweenChecks, days - passed) * day - hour);
      await this.settle();
    }
  }

  /** Runs all due work of an hour, and the work that follows from it. */
  async settle(): Promise<void> {
    for (let round = 0; round < 3; round++) {
      this.standStill(hour / 3);
      const { table, sender } = this.made;
      await claimDue({ table, sender, clock: this.#clock, log: silentLog, metrics: silentMetrics });
      await sender.send(this.clusters().flatMap(({ name }) => (this.unplugged.has(name) ? [] : [workOn(name)])));
      await this.#deliver();
    }
  }

  clusters(): readonly ClusterRow[] {
    return this.made.rows<ClusterRow>("Cluster");
  }

  syncs(): readonly SyncRow[] {
    return this.made.rows<SyncRow>("SyncOnCluster");
  }

  rows(): readonly Row[] {
    return this.made.table.all();
  }

  has(key: string): boolean {
    return this.blobs.keys().includes(key);
  }

  readonly #clock = { now: () => this.made.now };

  async #deliver(): Promise<void> {
    const queue: Message[] = [];
    for (let sent = 0; sent < mostMessages; sent++) {
      queue.push(...this.made.sender.take());
      const message = queue.shift();
      if (message === undefined) return;
      try {
        await this.#handle(message, mortal({ ...this.made, blobs: this.blobs }, this.death()));
      } catch (error) {
        // The message is delivered again.
        if (!(error instanceof Crash)) throw error;
        queue.push(message);
      }
    }
    throw new Error("it never ends");
  }

  async #handle(message: Message, ports: Ports): Promise<void> {
    const common = { ...ports, clock: this.#clock, ids: { unique: () => `id-${++this.#ids}` }, log: silentLog };
    if (message.to === "rollout") {
      const call = { until: new Date(this.made.now.getTime() + 60_000) };
      const clusters = message.clusters === undefined ? {} : { clusters: new Set(message.clusters) };
      await planOwner(owner, { ...call, ...clusters }, { ...common, ids: randomIds, installation: "test" });
    }
    if (message.to === "render") await renderInput(message, { ...common, builder: builderOf(ports.blobs), turns: 1 });
    if (message.to === "resolve")
      await resolveSource(
        message,
        {
          ...common,
          git: this.#git(),
          http: noHttp,
          ...noBuckets,
          secrets: { read: async () => "" },
          role: noRole,
          events: undefined,
        },
        { getRemainingTimeInMillis: () => 180_000 },
      );
    if (message.to === "apply" && message.cluster !== undefined) await this.#work(message.cluster, ports);
  }

  /** Works like a worker: first it reads what the rows name, then it fetches the desired renderings. */
  async #work(name: string, ports: Ports): Promise<void> {
    const of = (row: { readonly pk: string }) => row.pk === keys.cluster(name).pk;
    await renewClusterBlobs(
      { cluster: this.clusters().find(of), syncs: this.syncs().filter(of), readAt: this.made.now },
      { ...ports, log: silentLog },
    );
    if (this.unplugged.has(name)) return;
    for (const row of this.syncs().filter(of)) await this.#check(row, ports.sender);
  }

  async #check(row: SyncRow, sender: MessageSender): Promise<void> {
    const { cluster, name, desired, observed } = row;
    const { action, attempt, renderDigest, input, source: from, revision } = desired;
    if (action === "orphan") return;
    if (renderDigest !== undefined && !this.has(blobKeys.rendering(renderDigest))) {
      this.missed.add(blobKeys.rendering(renderDigest));
      const asked = { input: input ?? "", notify: owner, source: { ...source, name: from ?? "", revision } };
      await sender.send([{ to: "render", ...asked, lost: renderDigest } satisfies RenderMessage]);
      if (observed?.reason === "RenderingLost") return;
      await this.made.observe(cluster, "Retrying", { name, reason: "RenderingLost" });
      await sender.send([{ to: "rollout", owner, clusters: [cluster] }]);
      return;
    }
    const given = this.given.get(row.sk + row.pk) ?? new Set<string>();
    if (renderDigest !== undefined) this.given.set(row.sk + row.pk, given.add(renderDigest));
    if ((await this.made.group()).operations.suspended !== undefined) return;
    const phase = this.failing.has(cluster) ? "Failed" : action === "delete" ? "Gone" : "Ready";
    if (observed?.attempt === attempt && observed.phase === phase) return;
    await this.made.observe(cluster, phase, { name });
    if (phase === "Ready" && renderDigest !== undefined) this.given.set(row.sk + row.pk, new Set([renderDigest]));
    await sender.send([{ to: "rollout", owner, clusters: [cluster] }]);
  }

  #git(): GitRemote {
    const { commits } = this;
    return {
      async listRefs() {
        const { oid = "" } = commits.at(-1) ?? {};
        return [{ ref: "refs/heads/main", oid }];
      },
      async fetchTree(_repository, { oid }) {
        const { content = "" } = commits.find((commit) => commit.oid === oid) ?? {};
        const about = { oid, subject: content, authorName: "ana", authorEmail: "ana@example.com", committedAt: "" };
        const files = [{ path: "a.yaml", executable: false, content: Buffer.from(content) }];
        return { commit: about, raw: { commit: Buffer.alloc(0) }, files };
      },
    };
  }
}

function workOn(cluster: string): Message {
  return { to: "apply", cluster };
}

/** A simulated rendering: the content of the artifact, and its origin. */
function builderOf(blobs: BlobStore): Builder {
  return {
    async build({ artifactDigest, path }) {
      await blobs.get(blobKeys.artifact(artifactDigest));
      const bytes = Buffer.from(JSON.stringify([{ artifactDigest, path }]));
      return { digest: sha256(bytes), objects: 1, bytes };
    },
  };
}

/** The ports of a process that dies between two calls. */
function mortal(ports: Ports, death: Death | undefined): Ports {
  let calls = 0;
  const wrapped = <Port extends object>(port: Port): Port =>
    new Proxy(port, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        return async (...given: unknown[]) => {
          const call = ++calls;
          if (death !== undefined && (call > death.at || (call === death.at && death.when === "before")))
            throw new Crash();
          const result: unknown = await Reflect.apply(member, target, given);
          if (death !== undefined && call === death.at) throw new Crash();
          return result;
        };
      },
    });
  return { table: wrapped(ports.table), blobs: wrapped(ports.blobs), sender: wrapped(ports.sender) };
}
