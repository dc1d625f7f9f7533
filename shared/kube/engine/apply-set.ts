import type { SleepingClock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { isLeftAlone } from "#shared/kube/apply-marks.ts";
import { inRanks, rankOf, ranks } from "#shared/kube/apply-order.ts";
import { isBuiltinGroup } from "#shared/kube/builtin-groups.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { type AppliedObject, applyObject } from "#shared/kube/engine/apply-object.ts";
import { awaitDefinitions } from "#shared/kube/engine/await-definitions.ts";
import { definitionGenerations, definitionNames } from "#shared/kube/engine/definition-generations.ts";
import { readExisting } from "#shared/kube/engine/existing-objects.ts";
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
import { describeObject, kindKey, objectIdKey } from "#shared/kube/object-id.ts";
import type { HookMarks } from "#shared/kube/order-marks.ts";
import type { AnyReason } from "#shared/kube/reasons.ts";

export interface ApplySetRequest {
  /** The rendering. */
  readonly objects: readonly ManifestObject[];
  readonly setId: string;
  /** For namespaced objects that name none; absent: they are refused. */
  readonly defaultNamespace?: string | undefined;
  /** What is known of the set from before. */
  readonly inventory: Inventory;
  /** `objectIdKey` of what an earlier run of the same attempt applied and recorded: it is not applied again. */
  readonly done?: ReadonlySet<string>;
  /** Those of the objects that are applied, where not all are; the others are only checked. */
  readonly part?: ReadonlySet<ManifestObject>;
  /** Which of the objects are hooks, and what they are run for; absent: none is. */
  readonly hooks?: { readonly of: ReadonlyMap<ManifestObject, HookMarks>; readonly run: HookRun };
  /** Tools whose objects may be taken over; objects that nobody marked always may. */
  readonly adopt?: readonly ForeignTool[];
  /** Of the other sets of the same owner; absent: there are none. */
  readonly standingOf?: StandingOf;
  readonly clock: SleepingClock;
  /** No write is begun after this. */
  readonly deadline: Date;
}

/**
 * - `applied`: every object was;
 * - `waiting`: nothing failed, but something has to end first, or the time was up: call again;
 * - `failed`: at least one object failed; others may have been applied. Nothing may be pruned;
 * - `unreachable`: the cluster stopped answering, or could not be asked any more.
 */
export interface ApplySetResult {
  readonly outcome: "applied" | "waiting" | "failed" | "unreachable";
  /** Some of it was not begun, or cut off, because the time was up: another run with what is `done` gets further. */
  readonly timeWasUp: boolean;
  /** One for each object that was to be applied, in the order of application. */
  readonly objects: readonly AppliedObject[];
  /** For the inventory; see `Inventory.definitions`. */
  readonly definitions: Readonly<Record<string, number>>;
}

const concurrency = 12;
const definitionWaitMs = 10_000;

/**
 * Applies a rendering, or a part of it, without what git says is left alone: validates all, then rank by rank, every rank at once up to a limit. A failing object does
 * not hide the others; only Namespaces and definitions hold back what comes after them, because it depends on them.
 * The answers say everything about each object; nothing is stored here.
 * @throws KubeError when the cluster cannot even be asked for its kinds.
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
    // What is recorded without a uid was not there: who has its name now may be somebody else.
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

  /** What was never applied is not even recorded. */
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
   * Reads the generations of definitions as they are when all that are in the rendering were applied, and before anything of
   * their kinds is: what changes while objects are applied is then looked for by the next look.
   */
  beginDefinitions(targets: readonly Target[]): void {
    if (this.#definitions !== undefined || this.obstacle !== undefined) return;
    const kinds = targets.map(({ id }) => id);
    this.#definitions = definitionGenerations(this.#client, kinds);
    // Where the run ends otherwise nobody asks what became of it.
    this.#definitions.catch(() => {});
  }

  /** Before the first object that has one is applied. */
  async definitionsRead(): Promise<void> {
    await this.#definitions?.catch(() => {});
  }

  /**
   * Of the kinds of which everything that is recorded was applied by this run. What an earlier part of the attempt applied, or
   * was only compared, is as the definition of then made it: the generation that is recorded stays, and the next look compares.
   * Another run reads them where there is no time left.
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

  /** The metadata of objects that the inventory does not know: somebody else may have made them. */
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
      // One kind that cannot be read must not hide the others: each object is then read alone, and fails alone.
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
   * Not a Job that was not there when it was recorded, for who has its name now may be somebody else; nor what was left as it
   * is, which may be marked in the cluster.
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

  /** What one result means for those after it, of its own rank too. */
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

  /** What later ranks need of this one: Namespaces that are there, definitions that are established and served. */
  async #afterRank(targets: readonly ResolvedObject[]): Promise<void> {
    const { clock, deadline } = this.#request;
    const failed = this.objects.find(({ id, outcome }) => outcome === "failed" && rankOf(id) <= ranks.definition);
    if (failed !== undefined) {
      const message = `not begun, because ${describeObject(failed.id)} failed`;
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

/** Nothing is written while any object is invalid; all that are get named. */
function refused(resolved: readonly ResolvedObject[], { definitions }: Inventory): ApplySetResult {
  const skipped = { reason: "SetInvalid", message: "not begun, because another object of the set is invalid" } as const;
  const objects = resolved.map(
    ({ id, invalid }): AppliedObject =>
      invalid === undefined ? { id, outcome: "skipped", ...skipped } : { id, outcome: "failed", failure: invalid },
  );
  return { outcome: "failed", timeWasUp: false, objects, definitions };
}
