import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { documentReference, objectKey, objectText } from "#functions/api/request/reference.ts";
import { type DocumentProblem, invalidDocuments, refusal } from "#functions/api/request/refusal.ts";
import { approverWarnings } from "#functions/api/write/approver-warnings.ts";
import { bucketWarnings, ownBucketProblems } from "#functions/api/write/bucket-warnings.ts";
import { checkDocuments } from "#functions/api/write/check-documents.ts";
import { clusterWarnings } from "#functions/api/write/cluster-warnings.ts";
import { type Consequences, consequencesOf } from "#functions/api/write/consequences.ts";
import { groupWarnings } from "#functions/api/write/group-warnings.ts";
import { guardedChanges, guardQuestion } from "#functions/api/write/guard-questions.ts";
import {
  documentChange,
  type ObjectChange,
  type WriteOutcome,
  type WrittenRow,
} from "#functions/api/write/object-change.ts";
import { paceWarnings } from "#functions/api/write/pace-warnings.ts";
import { refuseCycles } from "#functions/api/write/refuse-cycles.ts";
import { judgeSecrets } from "#functions/api/write/secret-problems.ts";
import { sourceWarnings } from "#functions/api/write/source-warnings.ts";
import { stageWarnings } from "#functions/api/write/stage-warnings.ts";
import { valueWarnings } from "#functions/api/write/value-warnings.ts";
import { windowWarnings } from "#functions/api/write/window-warnings.ts";
import { sendAfter, writeObject } from "#functions/api/write/write-object.ts";
import { zoneProblems } from "#functions/api/write/zone-problems.ts";
import { defined } from "#shared/base/defined.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { parseAlarmArn } from "#shared/fleet/alarm-arn.ts";
import { type Document, type WritableKind, writableKinds } from "#shared/fleet/kinds/document.ts";
import { withApproval } from "#shared/fleet/rollout/guard.ts";
import { nextAct } from "#shared/fleet/rows/object-rows.ts";
import type { WithheldChange } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, keyText, newerRowText } from "#shared/fleet/rows/row.ts";

/** Transactions at once; all callers share one table. */
const writesAtOnce = 8;

export interface ApplyRequest {
  readonly documents: readonly unknown[];
  readonly mode: "dryRun" | "write";
  /** True when the caller has seen what the change deletes. */
  readonly confirmed: "confirmed" | "ask";
  /** Hashes of the changes that the caller approves although they are more than a guard allows. */
  readonly guardHashes?: readonly string[];
  readonly caller: Caller;
}

export interface AppliedDocument {
  readonly kind: WritableKind;
  readonly namespace?: string;
  readonly name: string;
  readonly outcome: WriteOutcome;
  readonly generation: number;
  readonly warnings: readonly string[];
}

export interface ApplyAnswer {
  /** Results in the order of the request's documents. */
  readonly items: readonly AppliedDocument[];
  /** In a dry run, the confirmation that the real run would ask for. */
  readonly consequences?: readonly Consequences[];
}

/**
 * Applies documents: all are checked before the first is written, and one wrong document refuses them all. A second
 * application of the same documents changes nothing.
 * @throws StarlingError `Invalid` with every problem; `ConfirmationRequired` with what would be deleted; `Deleting`.
 */
export async function applyDocuments(ports: ApiPorts, request: ApplyRequest): Promise<ApplyAnswer> {
  const documents = await checkDocuments(request.documents);
  const current = await readCurrent(ports, documents);
  const { installation, bucketRules, zoneNetworks, servedNames } = ports;
  refuseImpossible(documents, { current, installation, bucketRules, zoneNetworks, servedNames });
  await refuseCycles(ports.table, documents);
  const sources = await sourceWarnings(ports.table, documents);
  const clusters = await clusterWarnings(ports.table, documents);
  const groups = await groupWarnings(ports.table, documents);
  const values = await valueWarnings(ports.table, documents);
  const stages = await stageWarnings(ports.table, documents);
  const pace = paceWarnings(documents);
  const windows = windowWarnings(documents, ports.clock.now());
  const buckets = bucketWarnings(documents, bucketRules);
  const approvers = approverWarnings(documents, ports.personalRoles);
  const secrets = documents.map((document, index) => judgeSecrets(document, current[index], installation).warnings);
  const warnings = documents.map((_, index) =>
    [sources, buckets, secrets, clusters, groups, windows, stages, approvers, values, pace].flatMap(
      (found) => found[index] ?? [],
    ),
  );

  const consequences: Consequences[] = [];
  const guarded: (readonly WithheldChange[])[] = [];
  const { guardHashes: approved = [] } = request;
  for (const [index, document] of documents.entries()) {
    const before = current[index];
    const withheld = await guardedChanges(ports, { document, before, approved });
    guarded[index] = withheld;
    // The guard asks about dropped templates, by their hash.
    const isAsked = withheld.some(({ kind }) => kind === "templates");
    const found = isAsked ? undefined : await consequencesOf(ports.table, { document, before });
    if (found !== undefined) consequences.push(found);
    consequences.push(...withheld.map((one) => guardQuestion(document, one)));
  }
  const now = ports.clock.now();
  const answer = (changes: readonly ObjectChange[]): readonly AppliedDocument[] =>
    changes.map((change, index) => outcomeOf(documents[index] as Document, change, warnings[index] ?? []));

  if (request.mode === "dryRun") {
    const changes = documents.map((document, index) => documentChange(current[index], document, { now, uid: "" }));
    return { items: answer(changes), ...(consequences.length === 0 ? {} : { consequences }) };
  }
  const isConfirmed = ({ guardHash }: Consequences) =>
    guardHash === undefined ? request.confirmed === "confirmed" : approved.includes(guardHash);
  if (!consequences.every(isConfirmed)) {
    const message = consequences.map((entry) => entry.message).join("; ");
    throw refusal("ConfirmationRequired", message, { consequences });
  }

  const changes: ObjectChange[] = [];
  try {
    for (const part of partsOfOneKind(documents)) {
      const written = await Promise.allSettled(
        part.map(async (index) => {
          const document = documents[index] as Document;
          const uid = ports.ids.unique();
          changes[index] = await writeObject(ports, {
            reference: documentReference(document),
            verb: "apply",
            caller: request.caller,
            decide: (before) =>
              documentChange(approvedBy(before, guarded[index], request.caller, ports), document, {
                now: ports.clock.now(),
                uid,
              }),
          });
        }),
      );
      const failed = written.find((result) => result.status === "rejected");
      if (failed !== undefined) throw failed.reason;
    }
  } finally {
    await sendAfter(
      ports,
      changes.filter((change) => change !== undefined),
    );
  }
  return { items: answer(changes) };
}

/** The row with the caller's approvals of what its guard would withhold: the planner does not ask again. */
function approvedBy(
  before: WrittenRow | undefined,
  withheld: readonly WithheldChange[] = [],
  { principal, reason }: Caller,
  { clock }: Pick<ApiPorts, "clock">,
): WrittenRow | undefined {
  if (before === undefined) return undefined;
  const act = { by: principal, at: clock.now().toISOString(), ...defined({ reason }) };
  let { operations } = before;
  for (const { hash } of withheld) {
    operations = withApproval(operations, { ...act, number: nextAct(operations), hash });
  }
  return { ...before, operations };
}

async function readCurrent(
  ports: ApiPorts,
  documents: readonly Document[],
): Promise<readonly (WrittenRow | undefined)[]> {
  const rowKeys = documents.map((document) => objectKey(documentReference(document)));
  const found = await ports.table.getMany(rowKeys, { newer: "kept" });
  const [newer, ...others] = found.filter(isNewer);
  if (newer !== undefined) throw refusal("NewerRow", `nothing was applied: ${newerRowText(newer, others.length)}`);
  const rows = new Map(found.filter((row) => !isNewer(row)).map((row) => [keyText(row), row]));
  return rowKeys.map((key) => rows.get(keyText(key)));
}

interface Present {
  readonly current: readonly (WrittenRow | undefined)[];
  readonly installation: string;
}

/**
 * Checks that depend on the existing object or the installation: an object that is being deleted, fields that cannot
 * change, and secrets and alarms that cannot be read.
 */
function refuseImpossible(
  documents: readonly Document[],
  {
    current,
    installation,
    bucketRules,
    ...zones
  }: Present & Pick<ApiPorts, "bucketRules" | "zoneNetworks" | "servedNames">,
): void {
  const problems: DocumentProblem[] = [];
  for (const [index, document] of documents.entries()) {
    const before = current[index];
    const object = objectText(documentReference(document));
    if (before?.operations.deletion !== undefined) {
      const { by, at } = before.operations.deletion;
      throw refusal("Deleting", `${object} is being deleted (by ${by} at ${at}); apply it again when it is gone`);
    }
    const problem = document.kind === "Cluster" ? addressProblem(document, before) : undefined;
    if (problem !== undefined) problems.push({ document: index, object, ...problem });
    for (const found of ownBucketProblems(document, bucketRules)) problems.push({ document: index, object, ...found });
    for (const { field, message } of judgeSecrets(document, before, installation).refused)
      problems.push({ document: index, object, field, message });
    for (const found of zoneProblems(document, zones)) problems.push({ document: index, object, ...found });
    for (const found of alarmProblems(document, installation)) problems.push({ document: index, object, ...found });
    if (document.kind === "Sync" && before?.type === "Sync" && before.spec.cluster !== document.spec.cluster) {
      const message = `is ${document.spec.cluster}, was ${before.spec.cluster}, and cannot change: delete this Sync and write another for ${document.spec.cluster}`;
      problems.push({ document: index, object, field: "spec.cluster", message });
    }
  }
  if (problems.length > 0) throw invalidDocuments(problems, documents.length);
}

/** Alarms are read in the account and region of the installation. */
function alarmProblems(
  document: Document,
  installation: string,
): readonly Pick<DocumentProblem, "field" | "message">[] {
  if (document.kind !== "SyncGroup") return [];
  // A local installation has neither.
  const [, ownAccount, ownRegion] = installation.split(".");
  if (ownRegion === undefined) return [];
  return document.spec.rollout.stages.flatMap(({ after = [] }, stage) =>
    after.flatMap(({ alarm }, index) => {
      if (alarm === undefined) return [];
      const { accountId, region } = parseAlarmArn(alarm.arn);
      if (accountId === ownAccount && region === ownRegion) return [];
      const message = `is ${alarm.arn}, of account ${accountId} in ${region}; this installation reads alarms of account ${ownAccount} in ${ownRegion}: make an alarm on the metric there`;
      return [{ field: `spec.rollout.stages[${stage}].after[${index}].alarm.arn`, message }];
    }),
  );
}

/** A Cluster document is complete, or states what differs from a discovered cluster. */
function addressProblem(
  { metadata, spec }: Extract<Document, { kind: "Cluster" }>,
  before: WrittenRow | undefined,
): Pick<DocumentProblem, "field" | "message"> | undefined {
  const discovered = before?.type === "Cluster" ? before.discovered : undefined;
  if (discovered === undefined) {
    if (spec.eks !== undefined || spec.endpoint !== undefined) return undefined;
    const message = `needs exactly one of eks or endpoint: no ClusterDiscovery has found a cluster ${metadata.name} yet, of which this could be the rest`;
    return { field: "spec", message };
  }
  const { by, arn } = discovered;
  if (spec.endpoint !== undefined) {
    return {
      field: "spec.endpoint",
      message: `goes with no cluster that was discovered (${arn}, by ${by}); remove it`,
    };
  }
  if (spec.eks === undefined || spec.eks.arn === arn) return undefined;
  const message = `is ${spec.eks.arn}; ClusterDiscovery ${by} has found ${arn} under this name: leave spec.eks out, or write another Cluster`;
  return { field: "spec.eks.arn", message };
}

function outcomeOf(document: Document, change: ObjectChange, warnings: readonly string[]): AppliedDocument {
  return { ...documentReference(document), outcome: change.outcome, generation: change.after.generation, warnings };
}

/** Sorts by kind, so that objects are written before those that refer to them. */
function partsOfOneKind(documents: readonly Document[]): readonly (readonly number[])[] {
  const byKind = Map.groupBy(documents.keys(), (index) => documents[index]?.kind);
  return writableKinds.flatMap((kind) => inParts(byKind.get(kind) ?? [], writesAtOnce));
}
