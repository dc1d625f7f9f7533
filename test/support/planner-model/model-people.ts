import { checkedPrunes } from "#functions/api/read/checked-prunes.ts";
import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { applyDocuments } from "#functions/api/write/apply-documents.ts";
import { approveGuard } from "#functions/api/write/approve-guard.ts";
import { cordonCluster, uncordonCluster } from "#functions/api/write/cordon-cluster.ts";
import { deleteObject } from "#functions/api/write/delete-object.ts";
import { operate } from "#functions/api/write/operate.ts";
import { operateRollout } from "#functions/api/write/operate-rollout.ts";
import type { RolloutRequest } from "#functions/api/write/rollout-verb.ts";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import { cordonUpdate } from "#shared/fleet/rows/cordons-row.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow, FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow, StageRunRow, WithheldChange } from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import { type AlarmWord, ModelAlarms } from "#test/support/planner-model/model-alarms.ts";
import { ModelCordons } from "#test/support/planner-model/model-cordons.ts";
import { type ModelTime, ModelWindows } from "#test/support/planner-model/model-windows.ts";
import { owner } from "#test/support/planner-world.ts";

/** Whether people act on what they see now, or on what they saw when they last looked. */
type Reading = "now" | "before";

/** People say this about rollouts. Places are counted from the newest, and wrap around. */
export type PeopleAct =
  | { readonly do: "hold"; readonly seconds: number | undefined }
  | { readonly do: "release"; readonly to: number | undefined }
  | { readonly do: "reject"; readonly at: number }
  | { readonly do: "unreject"; readonly at: number }
  | { readonly do: "promote"; readonly at: number; readonly read: Reading }
  | { readonly do: "retry"; readonly of: number | undefined }
  | { readonly do: "rollback"; readonly to: number | undefined }
  /** One cluster, or a ring. */
  | { readonly do: "skip"; readonly of: number; readonly ring: number | undefined }
  | { readonly do: "cordon"; readonly of: number; readonly seconds: number | undefined }
  | { readonly do: "uncordon"; readonly of: number }
  | { readonly do: "alarm"; readonly at: number; readonly says: AlarmWord }
  | {
      readonly do: "answer";
      readonly at: number;
      readonly by: "robot" | "stranger";
      readonly says: "approved" | "rejected";
      readonly read: Reading;
    }
  | { readonly do: "approve"; readonly at: number; readonly by: number; readonly read: Reading }
  | { readonly do: "approve guard"; readonly at: number; readonly read: Reading }
  | {
      readonly do: "window";
      readonly at: number;
      readonly ring: number | undefined;
      readonly times: readonly ModelTime[];
    }
  | { readonly do: "no window"; readonly at: number };

/** The roles that may approve; the last one is nobody whom a stage names. */
export const approvers = ["ana", "ben", "cem"].map((name) => `arn:aws:iam::111122223333:role/sre-${name}`);
export const approvalBy = ["arn:aws:iam::*:role/sre-*"];
/** The program that answers checks, and the alarms beside bakes. */
export const robot = "arn:aws:iam::111122223333:role/robot";
export const alarms = ["errors", "latency"].map((name) => `arn:aws:cloudwatch:eu-west-1:111122223333:alarm:${name}`);
const stranger = "arn:aws:iam::111122223333:role/developer";

/** People see this before they act. */
interface Seen {
  readonly stageRuns: readonly StageRunRow[];
  readonly withheld: readonly WithheldChange[];
}

interface World {
  readonly ports: ApiPorts;
  readonly rolloutState: () => RolloutStateRow | undefined;
  readonly stageRuns: () => readonly StageRunRow[];
  readonly clusters: () => readonly FleetRow[];
  /** Somebody has approved a change that a guard withheld. */
  readonly guardApproved: (change: WithheldChange) => void;
}

/** People at work with commands. A refusal is an answer: they leave it at that. */
export class ModelPeople {
  readonly windows = new ModelWindows();
  readonly cordons = new ModelCordons();
  readonly alarms = new ModelAlarms();
  readonly #world: World;
  #seen: Seen = { stageRuns: [], withheld: [] };

  constructor(world: World) {
    this.#world = world;
  }

  async say(act: PeopleAct): Promise<void> {
    const { ports } = this.#world;
    const now = ports.clock.now();
    const { ledger = [], rejected = [] } = this.#world.rolloutState() ?? {};
    const endOf = (seconds: number | undefined) => (seconds === undefined ? undefined : later(now, seconds));
    const of = <Item>(items: readonly Item[], at: number) => items[at % Math.max(1, items.length)];
    if (act.do === "hold") return this.#ask("hold", { ...because, ...defined({ until: endOf(act.seconds) }) });
    if (act.do === "release") {
      const to = act.to === undefined ? undefined : of(ledger, act.to)?.number;
      return this.#ask("release", { ...because, ...defined({ to }) });
    }
    if (act.do === "reject" || act.do === "unreject") {
      const numbers = act.do === "reject" ? ledger.map(({ number }) => number) : rejected.map(({ rollout }) => rollout);
      const rollout = of(numbers, act.at);
      return rollout === undefined ? undefined : this.#ask(act.do, { ...because, rollout });
    }
    if (act.do === "retry") {
      const cluster = act.of === undefined ? undefined : of(this.#world.clusters(), act.of)?.name;
      return this.#ask("retry", { ...because, ...defined({ cluster }) });
    }
    if (act.do === "rollback") {
      const to = act.to === undefined ? undefined : of(ledger, act.to)?.number;
      return this.#ask("rollback", { ...because, dryRun: false, ...defined({ to }) });
    }
    if (act.do === "skip") {
      const cluster = of(this.#world.clusters(), act.of)?.name;
      const named = act.ring === undefined ? defined({ cluster }) : { clusters: `ring=r${act.ring}` };
      return Object.keys(named).length === 0 ? undefined : this.#ask("skip", { ...because, ...named });
    }
    if (act.do === "cordon" || act.do === "uncordon") {
      const cluster = of(this.#world.clusters(), act.of);
      return cluster && this.#cordon(act.do, cluster, act.do === "cordon" ? endOf(act.seconds) : undefined);
    }
    if (act.do === "alarm") return this.alarms.say(of(alarms, act.at) ?? "", act.says, now);
    if (act.do === "answer") {
      const asked = this.#read(act.read).stageRuns.filter(({ check }) => check !== undefined);
      const { stage, planHash: plan } = of(asked, act.at) ?? {};
      if (stage === undefined || plan === undefined) return;
      const body = { ...because, stage, plan, answer: act.says };
      return this.#ask("approve", body, act.by === "robot" ? robot : stranger);
    }
    if (act.do === "promote") {
      const stageRun = of(this.#read(act.read).stageRuns, act.at);
      if (stageRun === undefined) return;
      const { rollout, stage, snapshot } = stageRun;
      return this.#ask("promote", { ...because, rollout, stage, snapshot });
    }
    if (act.do === "approve") {
      const gated = this.#read(act.read).stageRuns.filter(({ planHash }) => planHash !== undefined);
      const { stage, planHash: plan } = of(gated, act.at) ?? {};
      if (stage === undefined || plan === undefined) return;
      return this.#ask("approve", { ...because, stage, plan }, of([...approvers, stranger], act.by));
    }
    if (act.do === "approve guard") {
      const change = of(this.#read(act.read).withheld, act.at);
      return change === undefined ? undefined : this.#approveGuard(change.hash);
    }
    const name = `window-${act.at}`;
    if (act.do === "no window") return this.#dropWindow(name);
    const spec = this.windows.set(name, { ring: act.ring, times: act.times }, now);
    const document = { apiVersion: ourApiVersion, kind: "Window", metadata: { name }, spec };
    await applyDocuments(ports, { documents: [document], mode: "write", confirmed: "confirmed", caller: caller() });
  }

  /** The verbs for every object. */
  async operate(verb: "suspend" | "resume" | "reconcile" | "refresh"): Promise<void> {
    await unlessRefused(() => operate(this.#world.ports, { reference: owner, verb, caller: caller() }));
  }

  async delete(cascade: "delete" | "orphan"): Promise<void> {
    const request = { reference: owner, cascade, confirmed: "confirmed", caller: caller() } as const;
    await unlessRefused(() => deleteObject(this.#world.ports, request));
  }

  /** Takes back everything that keeps rollouts back. */
  async makePeace(): Promise<void> {
    await this.operate("resume");
    await this.say({ do: "release", to: undefined });
    for (const { rollout } of this.#world.rolloutState()?.rejected ?? [])
      await this.#ask("unreject", { ...because, rollout });
    for (const name of this.windows.names()) await this.#dropWindow(name);
    for (const cluster of this.#world.clusters())
      if (this.cordons.names().includes(cluster.name)) await this.#cordon("uncordon", cluster, undefined);
    this.alarms.calm(this.#world.ports.clock.now());
  }

  /** A Cluster is deleted with its cordon. */
  async forget(cluster: string): Promise<void> {
    if (!this.cordons.names().includes(cluster)) return;
    this.cordons.drop(cluster);
    await this.#world.ports.table.write([{ delete: keys.cluster(cluster) }, cordonUpdate(cluster, undefined)]);
  }

  /** Everybody approves what waits for it. */
  async approveAll(): Promise<void> {
    const { stageRuns, withheld } = this.#read("now");
    for (const { stage, phase, planHash: plan, check } of stageRuns)
      if (phase === "Baking" && check !== undefined && plan !== undefined)
        await this.#ask("approve", { ...because, stage, plan, answer: "approved" }, robot);
    for (const { stage, phase, planHash: plan } of stageRuns)
      if (phase === "Gated" && plan !== undefined)
        for (const by of approvers) await this.#ask("approve", { ...because, stage, plan }, by);
    for (const { hash } of [...withheld, ...(await this.#checked())]) await this.#approveGuard(hash);
  }

  /** Whether clusters wait until somebody approves that objects are pruned. */
  async areAsked(): Promise<boolean> {
    const { guard } = this.#world.rolloutState() ?? {};
    const prunes = guard?.withheld.filter(({ kind }) => kind === "objects") ?? [];
    return prunes.length > 0 || (await this.#checked()).length > 0;
  }

  /** The prunes that checks met. */
  async #checked(): Promise<readonly WithheldChange[]> {
    return checkedPrunes(this.#world.ports.table, owner, this.#world.rolloutState()?.guard);
  }

  #read(read: Reading): Seen {
    const { stages = [], guard } = this.#world.rolloutState() ?? {};
    const open = new Set(stages.flatMap(({ updatingTo }) => (updatingTo === undefined ? [] : stageRunKey(updatingTo))));
    const stageRuns = this.#world.stageRuns().filter((stageRun) => open.has(stageRunKey(stageRun)));
    const seen = read === "now" ? { stageRuns, withheld: guard?.withheld ?? [] } : this.#seen;
    this.#seen = { stageRuns, withheld: guard?.withheld ?? [] };
    return seen;
  }

  async #ask<Verb extends RolloutRequest["verb"]>(
    verb: Verb,
    body: Extract<RolloutRequest, { verb: Verb }>["body"],
    principal?: string,
  ): Promise<void> {
    const request = { owner, verb, body, caller: caller(principal) } as RolloutRequest;
    await unlessRefused(() => operateRollout(this.#world.ports, request));
  }

  async #approveGuard(hash: string): Promise<void> {
    const { namespace, name } = owner;
    const request = { owner: { namespace, kind: "SyncGroup", name }, hash, caller: caller() } as const;
    const answer = await unlessRefused(() => approveGuard(this.#world.ports, request));
    if (answer !== undefined) this.#world.guardApproved(answer.approved);
  }

  /** The model's clusters have an object of their own only when somebody cordons them. */
  async #cordon(
    verb: "cordon" | "uncordon",
    { name, uid, labels }: FleetRow,
    until: string | undefined,
  ): Promise<void> {
    const { ports } = this.#world;
    const before = await ports.table.get(keys.cluster(name));
    const spec = { endpoint: { server: `https://${name}.test`, token: { secret: name } } };
    const row = {
      ...{ name, uid, labels, spec, annotations: {}, generation: 1, createdAt: ports.clock.now().toISOString() },
      ...{ operations: before?.operations ?? {}, status: { conditions: [] } },
    };
    const version = (before?.version ?? 0) + 1;
    await ports.table.write([
      { put: { ...keys.cluster(name), type: "Cluster", schema: rowSchema, version, ...row } as ClusterRow },
    ]);
    const request = { name, caller: { ...caller(), ...because } };
    if (verb === "uncordon") {
      await uncordonCluster(ports, request);
      this.cordons.drop(name);
    } else {
      const { cordoned } = await cordonCluster(ports, { ...request, until });
      this.cordons.set(name, cordoned?.until);
    }
    await ports.sender.send([{ to: "rollout", owner, clusters: [name] }]);
  }

  async #dropWindow(name: string): Promise<void> {
    if (!this.windows.names().includes(name)) return;
    this.windows.drop(name);
    const request = {
      reference: { kind: "Window", name },
      cascade: "orphan",
      confirmed: "confirmed",
      caller: caller(),
    } as const;
    await deleteObject(this.#world.ports, request);
  }
}

const because = { reason: "model" } as const;

function caller(principal = approvers[0] ?? ""): Caller {
  return { principal, ...because };
}

/** A person who is refused has changed nothing. */
async function unlessRefused<Answer>(call: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof StarlingError && error.retry === "permanent") return undefined;
    throw error;
  }
}
