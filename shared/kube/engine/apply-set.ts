import type { SleepingClock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { isLeftAlone } from "#shared/kube/apply-marks.ts";
import { inRanks, rankOf, ranks } from "#shared/kube/apply-order.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { type AppliedObject, applyObject } from "#shared/kube/engine/apply-object.ts";
import { awaitDefinitions } from "#shared/kube/engine/await-definitions.ts";
import { definitionGenerations, definitionNames, readExisting } from "#shared/kube/engine/existing-objects.ts";
import type { StandingOf } from "#shared/kube/engine/foreign-object.ts";
import { leftInPeace } from "#shared/kube/engine/kept-objects.ts";
import { endsTheRun, failureOf } from "#shared/kube/engine/object-failure.ts";
import { isCutOff, outOfTime } from "#shared/kube/engine/own-deadline.ts";
import { isDefinition, type ResolvedObject, resolveKind, resolveObjects } from "#shared/kube/engine/resolve-objects.ts";
import { type HookRun, runHook } from "#shared/kube/engine/run-hook.ts";
import { RunTime } from "#shared/kube/engine/run-time.ts";
import { entriesById, type Inventory } from "#shared/kube/inventory.ts";
import type { KubeObject, ManifestObject } from "#shared/kube/kube-object.ts";
import type { ForeignTool } from "#shared/kube/membership.ts";
import { describeObject, isBuiltinGroup, kindKey, objectIdKey } from "#shared/kube/object-id.ts";
import type { HookMarks } from "#shared/kube/order-marks.ts";
import type { AnyReason } from "#shared/kube/reasons.ts";

export interface ApplySetRequest {
  /** The rendering. */
  readonly objects: readonly ManifestObject[];
  readonly setId: string;
  /** The namespace of namespaced objects that name none; absent: such objects are refused. */
  readonly defaultNamespace?: string | undefined;
  /** The set's inventory from earlier runs. */
  readonly inventory: Inventory;
  /**
   * The `objectIdKey` of objects that an earlier run of the same attempt applied and recorded. They are not applied
   * again.
   */
  readonly done?: ReadonlySet<string>;
  /** The objects to apply, when not all of them are; the others are only validated. */
  readonly part?: ReadonlySet<ManifestObject>;
  /** The objects that are hooks, and the event of this run; absent: no object is a hook. */
  readonly hooks?: { readonly of: ReadonlyMap<ManifestObject, HookMarks>; readonly run: HookRun };
  /** Tools whose objects may be taken over. Objects without any tool's mark may always be taken over. */
  readonly adopt?: readonly ForeignTool[];
  /** The other sets of the same owner; absent: there are none. */
  readonly standingOf?: StandingOf;
  readonly clock: SleepingClock;
  /** No write is begun after this. */
  readonly deadline: Date;
}

/**
 *
 * - `applied`: every object was applied.
 * - `waiting`: nothing failed, but something has to end first, or the time was up; call again.
 * - `failed`: at least one object failed, and others may have been applied. Nothing may be pruned.
 * - `unreachable`: the cluster stopped answering, or could not be asked any more.
 */
export interface ApplySetResult {
  readonly outcome: "applied" | "waiting" | "failed" | "unreachable";
  /** Some objects were not begun, or were cut off, because the time was up. Another run with `done` continues. */
  readonly timeWasUp: boolean;
  /** One result for each object to apply, in the order of application. */
  readonly objects: readonly AppliedObject[];
  /** For the inventory; see `Inventory.definitions`. */
  readonly definitions: Readonly<Record<string, number>>;
}

const concurrency = 12;
const definitionWaitMs = 10_000;

/**
 * Applies a rendering or a part of it, except the objects that marks in git exclude. It validates all objects and then
 * applies them rank by rank, each rank concurrently up to a limit. A failing object does not hide the others. Only
 * Namespaces and definitions hold back later objects, which depend on them. The results say everything about each
 * object; this function stores nothing.
 * @throws KubeError when the cluster does not even answer which kinds it serves.
 */
export async function applySet(client: ClusterClient, request: ApplySetRequest): Promise<ApplySetResult> {
  const resolved = await resolveObjects(client, request.objects, request);
  if (resolved.some(({ invalid }) => invalid !== undefined)) return refused(resolved, request.inventory);

  const { objects, part, hooks } = request;
  const desired = resolved.flatMap((target, index): Target[] => {
    const object = objects[index];
    if (object === undefined || part?.has(object) === false) return [];
    return [{ ...target, ...defined({ hook: hooks?.of.get(object) }) }];
  });
  const run = new ApplyRun(client, request);
  run.leave(desired.filter(({ object }) => isLeftAlone(object)));
  const applied = desired.filter(({ object }) => !isLeftAlone(object));
  for (const rank of inRanks(applied, ({ id }) => id)) {
    if (rank.some(({ id }) => rankOf(id) > ranks.definition)) run.beginDefinitions(applied);
    if (rank.some(({ id }) => !isBuiltinGroup(id.group))) await run.definitionsRead();
    if (run.obstacle === undefined) await run.applyRank(rank);
    else run.skip(rank);
  }
  const definitions = { ...request.inventory.definitions, ...(await run.definitions()) };
  return { outcome: run.outcome(), timeWasUp: run.timeWasUp, objects: run.objects, definitions };
}

interface Target extends ResolvedObject {
  readonly hook?: HookMarks;
}

/** The state of one run over the ranks. */
class ApplyRun {
  readonly objects: AppliedObject[] = [];
  /** Why later ranks are not begun. */
  obstacle: { readonly reason: AnyReason; readonly message: string } | undefined;
  unreachable = false;
  timeWasUp = false;

  readonly #client: ClusterClient;
  readonly #request: ApplySetRequest;
  readonly #known: ReturnType<typeof entriesById>;
  readonly #newNamespaces = new Set<string>();
  readonly #time: RunTime;
  #definitions: Promise<Readonly<Record<string, number>>> | undefined;

  constructor(client: ClusterClient, request: ApplySetRequest) {
    this.#client = client;
    this.#request = request;
    // An entry without a uid stands for an object that did not exist. The name may now belong to someone else's object.
    const known = request.inventory.entries.filter(({ uid, expiring }) => uid !== "" || expiring !== undefined);
    this.#known = entriesById({ ...request.inventory, entries: known });
    this.#time = new RunTime(request);
  }

  async applyRank(targets: readonly Target[]): Promise<void> {
    const existing = await this.#existingOf(targets);
    const results = new Map<string, AppliedObject>();
    await runConcurrently(targets, concurrency, async (target) => {
      const result =
        this.#resumed(target) ??
        this.#holdBack(target) ??
        (await this.#time.measured(() => this.#applyOne(target, existing)));
      results.set(objectIdKey(target.id), result);
      this.#note(result);
    });
    this.objects.push(...targets.flatMap(({ id }) => results.get(objectIdKey(id)) ?? []));
    await this.#afterRank(targets);
  }

  /** An excluded object that was never applied is not recorded. */
  leave(targets: readonly Target[]): void {
    const kept = targets.map((target) =>
      leftInPeace({ target, ...defined({ known: this.#known.get(objectIdKey(target.id)) }) }),
    );
    this.objects.push(...kept.filter((result) => result !== undefined));
  }

  skip(targets: readonly ResolvedObject[]): void {
    for (const target of targets) {
      const { id } = target;
      if (this.obstacle) this.objects.push(this.#resumed(target) ?? { id, outcome: "skipped", ...this.obstacle });
    }
  }

  outcome(): ApplySetResult["outcome"] {
    if (this.unreachable) return "unreachable";
    if (this.objects.some(({ outcome }) => outcome === "failed")) return "failed";
    return !this.timeWasUp && this.objects.every((object) => "entry" in object) ? "applied" : "waiting";
  }

  /**
   * Reads the generations of definitions after all definitions of the rendering were applied, and before any object of
   * their kinds is. A change during the apply is then found by the next check.
   */
  beginDefinitions(targets: readonly Target[]): void {
    if (this.#definitions !== undefined || this.obstacle !== undefined) return;
    const kinds = targets.map(({ id }) => id);
    this.#definitions = definitionGenerations(this.#client, kinds);
    // When the run ends early, nobody awaits the result.
    this.#definitions.catch(() => {});
  }

  /** Awaited before the first object of a custom kind is applied. */
  async definitionsRead(): Promise<void> {
    await this.#definitions?.catch(() => {});
  }

  /**
   * The generations of kinds whose recorded objects were all applied by this run. Objects of an earlier part of the
   * attempt were applied under the definition of that time: their recorded generation stays, and the next check
   * compares it. When the time is up, another run reads the generations.
   */
  async definitions(): Promise<Readonly<Record<string, number>>> {
    if (this.unreachable) return {};
    const applied = this.objects.filter((object) => "entry" in object && object.outcome !== "resumed");
    const keys = new Set(applied.map(({ id }) => objectIdKey(id)));
    const others = this.#request.inventory.entries.filter(({ id }) => !keys.has(objectIdKey(id)));
    const earlier = new Set(others.map(({ id }) => kindKey(id)));
    const kinds = applied.map(({ id }) => id).filter((id) => !earlier.has(kindKey(id)));
    try {
      const found = (await this.#definitions) ?? {};
      const names = await definitionNames(this.#client, kinds);
      return Object.fromEntries(Object.entries(found).filter(([name]) => names.has(name)));
    } catch (error) {
      if (!isCutOff(error, this.#request)) throw error;
      this.timeWasUp = true;
      return {};
    }
  }

  /** The metadata of objects that the inventory does not know. Someone else may have created them. */
  async #existingOf(targets: readonly Target[]): Promise<ReadonlyMap<string, KubeObject> | undefined> {
    const desired: { id: ResolvedObject["id"]; kind: KindInfo }[] = [];
    for (const { id, object, hook } of targets) {
      if (hook !== undefined || this.#isSeen(id) || this.#newNamespaces.has(id.namespace) || this.#time.isUp())
        continue;
      const kind = await resolveKind(this.#client, object);
      if ("plural" in kind) desired.push({ id, kind });
    }
    try {
      return await readExisting(this.#client, desired);
    } catch (error) {
      // A kind that cannot be read must not hide the others. Each object is then read alone, and fails alone.
      failureOf(error);
      return undefined;
    }
  }

  async #applyOne(target: Target, existing: ReadonlyMap<string, KubeObject> | undefined): Promise<AppliedObject> {
    const { setId, clock, deadline, hooks, adopt = [], standingOf } = this.#request;
    const key = objectIdKey(target.id);
    const known = this.#known.get(key);
    if (target.hook !== undefined && hooks !== undefined) {
      const { hook } = target;
      const request = { target, hook, run: hooks.run, known, setId, clock, deadline };
      return runHook(this.#client, { ...request, ...defined({ standingOf }) });
    }
    try {
      const found = !this.#isSeen(target.id) ? (existing ?? (await this.#readAlone(target))).get(key) : undefined;
      return await applyObject(this.#client, {
        target,
        setId,
        adopt,
        clock,
        deadline,
        ...defined({ known, existing: found, standingOf }),
      });
    } catch (error) {
      if (isCutOff(error, this.#request)) return { id: target.id, outcome: "waiting", ...outOfTime };
      return { id: target.id, outcome: "failed", failure: failureOf(error) };
    }
  }

  /**
   * Whether the object itself was recorded. The name of a Job that did not exist at the time of its record may belong
   * to someone else's object. An object that was left alone may be marked in the cluster.
   */
  #isSeen(id: ResolvedObject["id"]): boolean {
    const known = this.#known.get(objectIdKey(id));
    return known !== undefined && known.uid !== "" && known.watched === undefined;
  }

  #resumed({ id }: ResolvedObject): AppliedObject | undefined {
    const key = objectIdKey(id);
    const entry = this.#request.done?.has(key) === true ? this.#known.get(key) : undefined;
    return entry === undefined ? undefined : { id, outcome: "resumed", entry };
  }

  async #readAlone({ id, object }: ResolvedObject): Promise<ReadonlyMap<string, KubeObject>> {
    const kind = await resolveKind(this.#client, object);
    return "plural" in kind ? readExisting(this.#client, [{ id, kind }]) : new Map();
  }

  #holdBack({ id }: ResolvedObject): AppliedObject | undefined {
    if (this.obstacle !== undefined) return { id, outcome: "skipped", ...this.obstacle };
    if (!this.#time.isUp()) return undefined;
    this.obstacle = outOfTime;
    return { id, outcome: "skipped", ...this.obstacle };
  }

  /** Applies the consequences of one result to later objects, including those of its own rank. */
  #note(result: AppliedObject): void {
    if (result.outcome === "created" && result.id.kind === "Namespace" && result.id.group === "") {
      this.#newNamespaces.add(result.id.name);
    }
    if ("reason" in result && result.reason === outOfTime.reason) this.timeWasUp = true;
    if (result.outcome !== "failed") return;
    if (endsTheRun(result.failure)) {
      this.unreachable = true;
      this.obstacle ??= { reason: result.failure.reason, message: result.failure.message };
    }
  }

  /** Provides what later ranks need: existing Namespaces, and definitions that are established and served. */
  async #afterRank(targets: readonly ResolvedObject[]): Promise<void> {
    const { clock, deadline } = this.#request;
    const failed = this.objects.find(({ id, outcome }) => outcome === "failed" && rankOf(id) <= ranks.definition);
    if (failed !== undefined) {
      const message = `not started, because ${describeObject(failed.id)} failed`;
      this.obstacle ??= { reason: "DependencyFailed", message };
    }
    const waiting = this.objects.find(({ id, outcome }) => outcome === "waiting" && rankOf(id) <= ranks.definition);
    if (waiting?.outcome === "waiting") this.obstacle ??= { reason: waiting.reason, message: waiting.message };
    const changed = targets.filter(({ id, object }) => isDefinition(object) && this.#needsWait(objectIdKey(id)));
    if (changed.length === 0 || this.obstacle !== undefined) return;
    const until = new Date(Math.min(clock.now().getTime() + definitionWaitMs, deadline.getTime()));
    const definitions = changed.map(({ object }) => object);
    const obstacles = await awaitDefinitions(this.#client, { definitions, clock, until });
    if (obstacles.length === 0) return;
    this.obstacle = { reason: "DefinitionNotEstablished", message: obstacles.slice(0, 3).join("; ") };
  }

  #needsWait(key: string): boolean {
    const result = this.objects.find(({ id }) => objectIdKey(id) === key);
    return (
      result !== undefined &&
      "entry" in result &&
      !(result.outcome === "unchanged" && result.health.status === "Current")
    );
  }
}

/** Writes nothing while any object is invalid, and names all invalid objects. */
function refused(resolved: readonly ResolvedObject[], { definitions }: Inventory): ApplySetResult {
  const skipped = {
    reason: "SetInvalid",
    message: "not started, because another object of the set is invalid",
  } as const;
  const objects = resolved.map(
    ({ id, invalid }): AppliedObject =>
      invalid === undefined ? { id, outcome: "skipped", ...skipped } : { id, outcome: "failed", failure: invalid },
  );
  return { outcome: "failed", timeWasUp: false, objects, definitions };
}
