import { sealedIn } from "#functions/rollout/clusters-by-state.ts";
import { withWanted } from "#functions/rollout/ledger.ts";
import { readMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { renewArtifacts } from "#functions/rollout/renew-blobs.ts";
import { rowsAbout } from "#functions/rollout/rows-about.ts";
import type { Round } from "#functions/rollout/settle-slots.ts";
import { clustersWithSyncs } from "#functions/rollout/state-entries.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { currentCorrelation } from "#shared/adapters/correlation.ts";
import { defined } from "#shared/base/defined.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { barredIn, legOf, legsIn, nextFeed } from "#shared/fleet/rollout/feed.ts";
import { type LegVerdict, legKey, noTargets, refOf, verdictOf } from "#shared/fleet/rollout/legs.ts";
import { describeRevisions, identityNow, type Member, relationOf, sealedTarget } from "#shared/fleet/rollout/plan.ts";
import { changingOf } from "#shared/fleet/rollout/slots.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { ContentRow, LegRow, Plan } from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";

/** Targets in one blob: what a look at a leg reads of its list. */
export const sealedInPage = 1000;

/**
 * The first stage that may take a content takes it: its leg is sealed, with the members of now and what they are rendered
 * from. @returns undefined when no stage takes anything.
 */
export async function sealNextLeg(
  known: Known,
  { stuck, doomed }: Pick<Round, "stuck" | "doomed">,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const { unit, row, desired, legs } = known;
  if (row.operations.suspended !== undefined && row.operations.deletion === undefined) return undefined;
  if (row.operations.restart !== undefined && row.operations.restart.number !== unit.handledRestart)
    return sealAnew(known, row.operations.restart.number, ports);
  const identity = desired.ok ? identityNow(known, desired.plan) : undefined;
  const feed = nextFeed(unit, {
    legs,
    stuck,
    halting: new Set(endingAs("Halted", known, doomed).map(legKey)),
    passing: new Set(
      endingAs("Passed", known, doomed)
        .filter(({ stage }) => stage !== unit.stages.at(-1)?.name)
        .map(legKey),
    ),
    isNew: identity !== undefined && unit.ledger[0]?.identity !== identity,
    supersede: relationOf(row).rollout.supersede,
    farewell: row.operations.deletion !== undefined,
    resumedAt: row.operations.resumed?.at,
  });
  if (feed === undefined) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  const content = feed.content === "newest" ? newContent(transaction, identity) : transaction.content(feed.content);
  // A Source that nobody looked at since, or that went back, may have stored it long ago.
  if (feed.content === "newest") await renewArtifacts([content], ports);
  await sealLeg(transaction, { stage: feed.stage, content }, ports);
  return transaction;
}

/** The legs that have this verdict when the time is up of what nothing in an attempt can help. */
function endingAs(phase: LegVerdict["phase"], { unit, row, legs }: Known, doomed: Round["doomed"]): readonly LegRow[] {
  const { rollout } = relationOf(row);
  return legsIn(unit, legs).filter((leg) => {
    const { all = 0, preexisting = 0 } = doomed.get(legKey(leg)) ?? {};
    const { Assigned, Failed } = leg.counts;
    const counts = { ...leg.counts, Assigned: Assigned - all, Failed: Failed + all };
    const preexistingFailures = leg.preexistingFailures + preexisting;
    return all > 0 && verdictOf({ ...leg, counts, preexistingFailures }, rollout).phase === phase;
  });
}

/** A `restart`: whatever is under way is sealed anew, with the terms and the members of now; what passed stays. */
async function sealAnew(known: Known, asked: number, ports: PlannerPorts): Promise<Transaction> {
  const transaction = new Transaction(known, ports.clock.now());
  transaction.edit({ handledRestart: asked });
  // What a removed stage had not passed goes through those of now with a number of its own.
  if (barredIn(known.unit) !== undefined) transaction.edit({ inputsVersion: known.unit.inputsVersion + 1 });
  for (const [stage, named] of known.unit.stages.entries()) {
    const leg = legOf(named, known.legs);
    if (leg !== undefined) await sealLeg(transaction, { stage, content: transaction.content(leg.content) }, ports);
  }
  return transaction;
}

function newContent(transaction: Transaction, identity: string | undefined): ContentRow {
  const { unit, desired, subject, row } = transaction.known;
  if (!desired.ok || identity === undefined) throw new Error("there is nothing to plan");
  const { plan } = desired;
  const number = unit.last + 1;
  const before = transaction.known.contents.get(unit.last);
  const revision = describeRevisions(plan);
  const { skipped } = withWanted(unit, { identity, revision });
  const content: ContentRow = {
    ...keys.content(subject, number),
    type: "Content",
    schema: rowSchema,
    version: 1,
    subject,
    number,
    identity,
    plan,
    revision,
    ...defined({ fromRevision: before?.revision, correlationId: currentCorrelation(), skipped }),
    trigger: triggerOf(plan, before, row.operations.recovered?.number),
    createdAt: transaction.at,
  };
  transaction.putContent(content);
  const templates = new Set([...unit.templates, ...plan.templates.map(({ name }) => name)]);
  transaction.edit({ wanted: undefined, skipped: undefined, templates: [...templates].sort() });
  return content;
}

function triggerOf(plan: Plan, before: ContentRow | undefined, recovered: number | undefined): ContentRow["trigger"] {
  if (plan.farewell !== undefined) return "deletion";
  if (before?.plan.contentHash !== plan.contentHash) return "plan";
  return recovered === undefined ? "inputs" : "recover";
}

/** Seals a content for a stage; whatever goes through it now gives way. */
export async function sealLeg(
  transaction: Transaction,
  { stage: index, content }: { readonly stage: number; readonly content: ContentRow },
  ports: PlannerPorts,
): Promise<void> {
  const { known } = transaction;
  const stage = transaction.unit.stages[index];
  if (stage === undefined) throw new Error(`there is no stage ${index}`);
  const old = stage.moving && transaction.leg(stage.moving);
  const members = await membersFor(transaction, { stage: stage.name, content }, ports);
  const holders = changingOf(transaction.unit) === 0 ? [] : await holdersOf(known, ports);
  const before = old && (await standingIn(old, { content, known }, ports));
  const standings = new Map<string, Standing>([
    ...holders.map((cluster) => [cluster, "sick"] as const),
    ...(before ?? []),
  ]);
  const groups = Map.groupBy(members, ({ cluster }) => standings.get(cluster) ?? "untouched");
  const { sick = [], well = [], untouched = [] } = Object.fromEntries(groups);
  const ordered = [...sick, ...well, ...untouched];
  const targets = ordered.map((member) => sealedTarget(member, content.plan));
  const pages: { key: string; first: number }[] = [];
  for (const [at, page] of inParts(targets, sealedInPage).entries())
    pages.push({ key: await ports.lists.store(page), first: at * sealedInPage });
  const seal = transaction.unit.seals + 1;
  const message = `stage ${stage.name} begins, with ${ordered.length} to look at`;
  const leg: LegRow = {
    ...keys.leg(known.subject, { content: content.number, stage: stage.name, seal }),
    type: "Leg",
    schema: rowSchema,
    version: 0,
    subject: known.subject,
    content: content.number,
    stage: stage.name,
    seal,
    phase: "Moving",
    reason: "Moving",
    message,
    size: ordered.length,
    pages,
    membersVersion: transaction.unit.membersVersion,
    next: 0,
    rendering: [],
    aside: [],
    returned: [],
    unrendered: [],
    ...(well.length === 0 ? {} : { verified: { from: sick.length, to: sick.length + well.length } }),
    counts: { ...noTargets, Waiting: ordered.length },
    preexistingFailures: 0,
    failures: [],
    away: [],
    // Nobody may have come to what was asked for then.
    ...defined({ retriedAt: old?.retriedAt, left: hasLost(old, content) }),
    startedAt: transaction.at,
    transitions: [{ at: transaction.at, phase: "Moving", reason: "Moving", message }],
  };
  if (old !== undefined) transaction.supersede(old, content.number);
  transaction.putLeg(leg);
  transaction.edit({ seals: seal });
  const isAhead = stage.ahead === true && old?.content === content.number;
  transaction.editStage(stage.name, ({ ahead: _before, ...kept }) => ({
    ...kept,
    moving: refOf(leg),
    ...(isAhead ? { ahead: true } : {}),
  }));
  transaction.report(leg);
}

/** Whether targets left before this content was verified in the stage: a new snapshot is no evidence. */
function hasLost(old: LegRow | undefined, { number }: ContentRow): true | undefined {
  return old?.content === number && (old.left === true || old.counts.Skipped > 0) ? true : undefined;
}

/** A deletion is about every cluster that has something of the subject: who is in no stage of it goes with the last. */
async function membersFor(
  { known, unit }: Transaction,
  { stage, content }: { readonly stage: string; readonly content: ContentRow },
  ports: PlannerPorts,
): Promise<readonly Member[]> {
  const members = await readMembers(known, ports);
  const own = members.filter((member) => member.stage === stage);
  const isLast = unit.stages.at(-1)?.name === stage;
  if (content.plan.farewell === undefined || !isLast) return own;
  const placed = members.filter((member) => unit.stages.some(({ name }) => name === member.stage));
  const clusters = await clustersWithSyncs(known.subject, ports.table);
  const others = [...clusters.difference(new Set(placed.map(({ cluster }) => cluster)))].sort();
  return [...own, ...others.map((cluster) => ({ cluster, uid: "", stage, labels: {}, values: {}, since: 0 }))];
}

type Standing = "sick" | "well";

/**
 * Clusters that have a slot, of whatever stage. They come first: what they keep counts in the stage's own bound before anybody
 * is given a new one.
 */
async function holdersOf({ subject }: Known, { table }: PlannerPorts): Promise<readonly string[]> {
  const { rows } = await rowsAbout(ranges.slots(subject), table);
  return rows.map(({ cluster }) => cluster);
}

/**
 * Who holds something of a leg that was not passed comes first. Sealed anew, a content keeps its evidence: those who were seen
 * to be ready with it, also by a seal that looked at nobody again.
 */
async function standingIn(
  leg: LegRow,
  { content, known }: { readonly content: ContentRow; readonly known: Known },
  ports: PlannerPorts,
): Promise<ReadonlyMap<string, Standing>> {
  const { subject } = known;
  const { from, to } = leg.verified ?? { from: 0, to: 0 };
  const orders = Array.from({ length: to - from }, (_, index) => from + index);
  const [targets, verified] = await Promise.all([
    rowsAbout(ranges.targets(subject, leg), ports.table),
    sealedIn(leg, orders, ports),
  ]);
  const given = targets.rows.filter(({ attempts }) => Object.keys(attempts).length > 0);
  const touched = [...given.map(({ cluster }) => cluster), ...targets.unread];
  const succeeded = [...targets.rows.filter(({ state }) => state === "Succeeded"), ...verified];
  const well = leg.content === content.number ? succeeded.map(({ cluster }) => cluster) : [];
  return new Map<string, Standing>([
    ...touched.map((cluster) => [cluster, "sick"] as const),
    ...well.map((cluster) => [cluster, "well"] as const),
  ]);
}
