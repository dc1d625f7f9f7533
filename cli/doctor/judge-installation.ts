/** Judges what an installation reports about itself. */
import type { CheckOutcome } from "#cli/doctor/checks.ts";
import type {
  AccountConcurrency,
  DeadLetters,
  DueWork,
  Installation,
  Tick,
  WebhookSecret,
} from "#shared/fleet/api/installation.ts";
import type { ZoneObject } from "#shared/fleet/api/zone-object.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { formatAge } from "#shared/words/age.ts";

/** Three ticks, because one may be throttled and one may fail. */
const silentSeconds = 180;
/** A tick claims due work at once, or the tick after it does. */
const stuckSeconds = 300;

type Reported = Pick<Installation, "at">;

export function judgeVersion({ stack, command }: { readonly stack: string; readonly command: string }): CheckOutcome {
  const found = `stack ${stack}, command ${command}`;
  const [older, newer] = [series(stack), series(command)];
  if (older === newer) return { state: "ok", found };
  const isStackOlder = stack.localeCompare(command, "en", { numeric: true }) < 0;
  const problem = isStackOlder ? "the stack is older than the command" : "the command is older than the stack";
  const remedy = isStackOlder ? "npx cdk deploy --all" : `git fetch --tags && git checkout v${stack} && npm ci`;
  return { state: "wrong", found, problem, remedy };
}

/** Compatible versions have the same first two numbers. */
function series(version: string): string {
  return version.split(".").slice(0, 2).join(".");
}

export function judgeWebhookSecret({ arn, state }: WebhookSecret): CheckOutcome {
  if (state === "set") return { state: "ok", found: "has a value" };
  return {
    state: "wrong",
    found: "empty",
    problem: "the webhook's secret has no value: every push is refused, and only polling finds new commits",
    remedy: `aws secretsmanager put-secret-value --secret-id ${arn} --secret-string "[\\"$(openssl rand -hex 32)\\"]"`,
  };
}

export function judgeTick({ function: name, lastAt }: Tick, { at }: Reported): CheckOutcome {
  const remedy = `aws lambda invoke --function-name ${name} /dev/stdout   (runs it now, and prints its error)`;
  const nothing = "due work is not done: docs/runbook.md, Silent timer";
  if (lastAt === undefined)
    return {
      state: "wrong",
      found: "never",
      problem: `no tick has succeeded yet (normal in the first minute of an installation); ${nothing}`,
      remedy,
    };
  const found = `${formatAge(lastAt, new Date(at))} ago`;
  if (secondsBetween(lastAt, at) <= silentSeconds) return { state: "ok", found };
  return { state: "wrong", found, problem: `the timer is silent; ${nothing}`, remedy };
}

export function judgeDueWork({ rows, oldest }: DueWork, { at }: Reported): CheckOutcome {
  if (oldest === undefined) return { state: "ok", found: "nothing is due" };
  const found = `${rows} ${rows === 1 ? "row" : "rows"}, the oldest since ${oldest.since}`;
  if (secondsBetween(oldest.since, at) <= stuckSeconds) return { state: "ok", found };
  const problem = `${oldest.row.pk} ${oldest.row.sk} is due, but no tick claims it: a newer version wrote it, or more work is due than ticks can claim; docs/runbook.md, Rows of a newer version`;
  return { state: "wrong", found, problem, remedy: inspectRow(oldest.row) };
}

function inspectRow(row: { readonly pk: string; readonly sk: string }): string {
  const object = keys.object.parse(row) ?? keys.rolloutState.parse(row);
  if (object !== undefined)
    return `starling describe ${object.kind.toLowerCase()}/${object.name} -n ${object.namespace}`;
  const sync = keys.sync.parse(row);
  if (sync !== undefined) return `starling describe sync/${sync.name} --cluster ${sync.cluster} -n ${sync.namespace}`;
  const cluster = keys.cluster.parse(row) ?? keys.lease.parse(row);
  return cluster === undefined
    ? "starling get syncs -A --state Unreadable"
    : `starling describe cluster/${cluster.cluster}`;
}

export function judgeDeadLetters(queues: readonly DeadLetters[], { name }: Pick<Installation, "name">): CheckOutcome {
  const full = queues.filter(({ messages }) => messages > 0);
  const [first] = full;
  const uncounted = queues.flatMap((each) => (each.uncounted === undefined ? [] : [`${each.of}: ${each.uncounted}`]));
  if (first === undefined) {
    if (uncounted.length > 0) return { state: "unchecked", because: uncounted.join("; ") };
    return { state: "ok", found: "none" };
  }
  const found = full.map(({ of, messages }) => `${of} ${messages}`).join(", ");
  // Messages of the schedule are not sent again: the next minute sends a new one.
  const remedy =
    first.of === "tick"
      ? `aws sqs purge-queue --queue-url ${first.queueUrl}   (after reading them)`
      : `aws sqs start-message-move-task --source-arn ${first.queueArn}${elsewhere(first.queueArn, name)}   (after repairing their cause)`;
  return { state: "wrong", found, problem: "messages failed in every attempt; the function's log says why", remedy };
}

/** The options and the hint for a queue of another account or region than the installation, whose name has both. */
function elsewhere(queueArn: string, installation: string): string {
  const [, ownAccount, ownRegion] = installation.split(".");
  const [, , , region, account] = queueArn.split(":");
  if (ownRegion === undefined) return "";
  const inRegion = region === ownRegion ? "" : ` --region ${region}`;
  return account === ownAccount ? inRegion : `${inRegion}   (with credentials of account ${account})`;
}

/** Workers of one version before or after the stack's work with it; others may meet rows and messages that they do not know. */
export function judgeZones(zones: readonly ZoneObject[], stack: string): CheckOutcome {
  const found = zones.map(({ metadata, workers }) => `${metadata.name} ${workers?.version ?? "no version"}`).join(", ");
  if (zones.length === 1) return { state: "ok", found: zones.map(({ metadata }) => metadata.name).join(", ") };
  const apart = zones.filter(
    ({ workers }) => workers?.version !== undefined && seriesApart(workers.version, stack) > 1,
  );
  if (apart.length === 0) return { state: "ok", found };
  const names = apart.map(({ metadata }) => metadata.name).join(", ");
  const problem = `the workers of ${names} are more than one version away from the stack ${stack}; docs/zones.md, Versions of zones`;
  return { state: "wrong", found, problem, remedy: "npx cdk deploy --all" };
}

/** By how many series two versions differ; a new first number counts as one. */
function seriesApart(one: string, other: string): number {
  const [[major = 0, minor = 0], [otherMajor = 0, otherMinor = 0]] = [one, other].map((each) =>
    each.split(".").map(Number),
  ) as [number[], number[]];
  return major === otherMajor ? Math.abs(minor - otherMinor) : Math.abs(major - otherMajor);
}

export function judgeConcurrency({ account, deployedFor, desired, clusters }: AccountConcurrency): CheckOutcome {
  const found = `${account} in the account, deployed for ${deployedFor}`;
  const need = `${clusters} clusters need ${desired} concurrent executions of Lambda`;
  if (account < desired) {
    const remedy = `aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value ${desired}`;
    return { state: "wrong", found, problem: `${need}, but the account allows ${account}`, remedy };
  }
  if (deployedFor >= desired) return { state: "ok", found };
  const problem = `${need}, but the stacks were deployed for ${deployedFor} (setting concurrency)`;
  return {
    state: "wrong",
    found,
    problem,
    remedy: `npx cdk deploy --all -c concurrency=${account} -c clusters=${clusters}`,
  };
}

function secondsBetween(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / 1000;
}
