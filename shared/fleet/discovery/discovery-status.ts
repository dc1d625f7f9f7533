import { counted } from "#shared/base/counted.ts";
import { defined } from "#shared/base/defined.ts";
import { canonicalJson } from "#shared/base/json.ts";
import type { Forgetting } from "#shared/fleet/discovery/gone.ts";
import type { ClusterDiscoverySpec } from "#shared/fleet/kinds/cluster-discovery.ts";
import type {
  DiscoveryRow,
  DiscoveryStatus,
  FoundRow,
  KeptCluster,
  RefusedCluster,
  RefusedParameter,
  RefusedTag,
  RefusedValue,
  UnseenPlace,
} from "#shared/fleet/rows/discovery-rows.ts";
import type { StatedCondition } from "#shared/fleet/rows/stated-reason.ts";

/** The result of a scan. */
export interface ScanResult {
  readonly accounts: number;
  readonly unseen: readonly UnseenPlace[];
  readonly refused: readonly RefusedCluster[];
  readonly refusedTags: readonly (RefusedTag & { readonly cluster: string })[];
  readonly refusedValues: readonly (RefusedValue & { readonly cluster: string })[];
  readonly refusedParameters: readonly RefusedParameter[];
  readonly clusters: Omit<NonNullable<DiscoveryStatus["clusters"]>, "refused">;
  /** Clusters that were forgotten within the last day. */
  readonly forgotten: readonly FoundRow[];
  readonly forgetting: Forgetting;
  /** Clusters that are gone and stay registered for a reason other than the limit. */
  readonly kept: readonly KeptCluster[];
  /** Problems of single clusters, which are not problems of the place. */
  readonly failed: readonly { readonly cluster: string; readonly message: string }[];
  readonly resume: string | undefined;
}

/** Each list of the status has at most this many entries; the rest is only counted. */
const mostReported = 20;
const namedInMessage = 3;

export function scannedStatus(
  row: Pick<DiscoveryRow, "status" | "generation" | "spec">,
  result: ScanResult,
  now: Date,
): DiscoveryStatus {
  const { clusters, unseen, refused, accounts } = result;
  const next: readonly StatedCondition[] = [
    ready(result),
    ...labelsCondition(result),
    ...valuesCondition(result),
    ...forgettingCondition(result, row.spec),
  ];
  return {
    observedGeneration: row.generation,
    scannedAt: now.toISOString(),
    clusters: { ...clusters, refused: refused.length },
    accounts,
    ...defined({ resume: result.resume }),
    ...(isPassing(result) ? { failures: (row.status.failures ?? 0) + 1 } : {}),
    ...(unseen.length === 0 ? {} : { unseen: unseen.slice(0, mostReported) }),
    ...(refused.length === 0 ? {} : { refused: refused.slice(0, mostReported) }),
    ...(result.forgotten.length === 0 ? {} : { forgotten: newestForgotten(result.forgotten) }),
    conditions: next.map((condition) => {
      const before = row.status.conditions.find(({ type }) => type === condition.type);
      return { ...condition, since: before?.status === condition.status ? before.since : now.toISOString() };
    }),
  };
}

/** Another scan soon may see more. */
function isPassing({ unseen, failed }: ScanResult): boolean {
  return failed.length > 0 || unseen.some(({ code }) => passing.has(code));
}

const passing: ReadonlySet<string> = new Set(["AccountThrottled", "AccountUnavailable", "StsUnavailable"]);

/** The organization could not be read, or something else that every scan needs. */
export function failedDiscoveryStatus(
  row: Pick<DiscoveryRow, "status" | "generation">,
  failure: { readonly code: string; readonly message: string },
  now: Date,
): DiscoveryStatus {
  const before = row.status;
  const known = before.conditions.find(({ type }) => type === "Ready");
  const since = known?.status === "False" ? known.since : now.toISOString();
  const message = `${failure.message}; what was found before stays as it is`;
  return {
    ...before,
    observedGeneration: row.generation,
    scannedAt: now.toISOString(),
    failures: (before.failures ?? 0) + 1,
    conditions: [{ type: "Ready", status: "False", reason: failure.code, message, since }],
  };
}

function ready(result: ScanResult): StatedCondition {
  const { unseen, refused, failed, clusters, accounts } = result;
  const found = `${counted(clusters.found, "cluster")} of ${counted(accounts, "account")}`;
  const problems = [unseenText(result), refusedText(refused), failedText(failed)].filter((text) => text !== "");
  if (problems.length === 0) return { type: "Ready", status: "True", reason: "Discovered", message: found };
  const reason = unseen.length > 0 || failed.length > 0 ? "Incomplete" : "ClustersRefused";
  return { type: "Ready", status: "False", reason, message: `${found}; ${problems.join("; ")}` };
}

function unseenText({ unseen }: ScanResult): string {
  if (unseen.length === 0) return "";
  // Many regions of an account fail for one cause.
  const causes = Map.groupBy(unseen, ({ account, message }) => canonicalJson([account, message]));
  const reported = [...causes.values()].slice(0, namedInMessage).map((same) => {
    const [{ account, message } = { account: "", message: "" }] = same;
    const regions = same.flatMap(({ region }) => region ?? []);
    return `account ${account}${regions.length === 0 ? "" : ` ${regions.join(", ")}`}: ${message}`;
  });
  const more = causes.size > reported.length ? `; and ${causes.size - reported.length} more` : "";
  return `not all could be seen, and what is known there stays as it is: ${reported.join("; ")}${more}`;
}

function refusedText(refused: readonly RefusedCluster[]): string {
  if (refused.length === 0) return "";
  const reported = refused.slice(0, namedInMessage).map(({ arn, message }) => `${arn}: ${message}`);
  const more = refused.length > reported.length ? `; and ${refused.length - reported.length} more` : "";
  return `${counted(refused.length, "cluster")} not registered: ${reported.join("; ")}${more}`;
}

function failedText(failed: ScanResult["failed"]): string {
  const [first] = failed;
  if (first === undefined) return "";
  const more = failed.length > 1 ? ` (and ${failed.length - 1} more)` : "";
  return `${first.cluster} could not be read${more}: ${first.message}`;
}

function labelsCondition({ refusedTags }: ScanResult): readonly StatedCondition[] {
  if (refusedTags.length === 0) return [];
  const reported = refusedTags.map(({ label, ...said }) => notTaken(`label ${label}`, said));
  const message = `not among the values that labels.allowed has, or no label's value: ${firstOf(reported)}`;
  return [{ type: "LabelsAccepted", status: "False", reason: "ValueNotAllowed", message }];
}

function notTaken(
  what: string,
  said: { readonly cluster: string; readonly tag: string; readonly value?: string; readonly kept?: string },
): string {
  const { cluster, tag, value, kept } = said;
  const found = value === undefined ? `has no tag ${tag}` : `has ${tag}=${value}`;
  return `${cluster} ${found}; its ${what} ${kept === undefined ? "is not set" : `stays ${kept}`}`;
}

function firstOf(texts: readonly string[]): string {
  const reported = texts.slice(0, namedInMessage);
  return `${reported.join("; ")}${texts.length > reported.length ? `; and ${texts.length - reported.length} more` : ""}`;
}

const parameterRemedies = {
  SecureString:
    "is a SecureString: values are shown to whoever may read a Cluster, so keep secrets where a cluster reads them itself, or make it a String",
  NoName: "has no name of a value as its last level: an identifier of A-Z, a-z, 0-9 and _",
  TooLarge: "has more below it than the values of a cluster: 100 of them, and 16384 bytes as JSON",
} satisfies Record<RefusedParameter["reason"], string>;

/** Problems of tags come first: somebody may have tried to choose what a cluster gets. */
function valuesCondition({ refusedValues, refusedParameters }: ScanResult): readonly StatedCondition[] {
  const tags = refusedValues.map(({ name, ...said }) => notTaken(`value ${name}`, { ...said, tag: name }));
  const parameters = refusedParameters.map(({ parameter, reason }) => `${parameter} ${parameterRemedies[reason]}`);
  const reason = tags.length > 0 ? "ValueNotAllowed" : refusedParameters[0]?.reason;
  if (reason === undefined) return [];
  const messages = [
    ...(tags.length === 0 ? [] : [`not among the values that values.allowed has: ${firstOf(tags)}`]),
    ...(parameters.length === 0 ? [] : [`not taken as values, which stay as they were: ${firstOf(parameters)}`]),
  ];
  return [{ type: "ValuesAccepted", status: "False", reason, message: messages.join("; ") }];
}

function newestForgotten(rows: readonly FoundRow[]): NonNullable<DiscoveryStatus["forgotten"]> {
  const reported = rows.flatMap(({ cluster, arn, forgotten }) =>
    forgotten === undefined ? [] : [{ cluster, arn, at: forgotten.at }],
  );
  return reported.sort((a, b) => (`${a.at} ${a.arn}` < `${b.at} ${b.arn}` ? 1 : -1)).slice(0, mostReported);
}

/** Clusters that have been gone for long enough, and stay all the same. */
function forgettingCondition(
  { forgetting, kept, forgotten }: ScanResult,
  { gone }: Pick<ClusterDiscoverySpec, "gone">,
): readonly StatedCondition[] {
  if (gone === undefined || forgetting.waiting.length + kept.length === 0) return [];
  const { waiting, bound, of } = forgetting;
  const more = waiting.length > namedInMessage ? ` and ${waiting.length - namedInMessage} more` : "";
  const names = waiting.slice(0, namedInMessage).map(({ cluster }) => cluster);
  const held =
    waiting.length === 0
      ? []
      : [
          `${counted(waiting.length, "cluster")} gone for longer than ${gone.after}, and not forgotten yet (${names.join(", ")}${more}): spec.gone.maxPerDay ${gone.maxPerDay} lets ${bound} of ${of} go within 24 hours, and ${forgotten.length} went; if that many are meant to be gone, raise it, or: starling delete cluster NAME --cascade orphan`,
        ];
  const others = kept.slice(0, namedInMessage).map(({ cluster, message }) => `${cluster} is gone and kept: ${message}`);
  const rest = kept.length > others.length ? [`and ${kept.length - others.length} more`] : [];
  const reason = (waiting.length === 0 ? kept[0]?.reason : undefined) ?? "MaxPerDay";
  return [{ type: "GoneForgotten", status: "False", reason, message: [...held, ...others, ...rest].join("; ") }];
}
