/** What of an installation is wrong, by what it tells of itself. */
import type { CheckOutcome } from "#cli/doctor/checks.ts";
import type {
  AccountConcurrency,
  DeadLetters,
  DueWork,
  Installation,
  Tick,
  WebhookSecret,
} from "#shared/fleet/api/installation.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { formatAge } from "#shared/words/age.ts";

/** Three ticks: one may be throttled, and one may fail. */
const silentSeconds = 180;
/** What is due is claimed by the next tick, or by the one after it. */
const stuckSeconds = 300;

type Told = Pick<Installation, "at">;

export function judgeVersion({ stack, command }: { readonly stack: string; readonly command: string }): CheckOutcome {
  const found = `stack ${stack}, command ${command}`;
  const [older, newer] = [series(stack), series(command)];
  if (older === newer) return { state: "ok", found };
  const isStackOlder = stack.localeCompare(command, "en", { numeric: true }) < 0;
  const problem = isStackOlder ? "the stack is older than the command" : "the command is older than the stack";
  const remedy = isStackOlder ? "npx cdk deploy --all" : `git fetch --tags && git checkout v${stack} && npm ci`;
  return { state: "wrong", found, problem, remedy };
}

/** Versions that go with each other have their first two numbers in common. */
function series(version: string): string {
  return version.split(".").slice(0, 2).join(".");
}

export function judgeWebhookSecret({ arn, state }: WebhookSecret): CheckOutcome {
  if (state === "set") return { state: "ok", found: "has a value" };
  return {
    state: "wrong",
    found: "empty",
    problem: "nobody has written the webhook's secret: every push is refused, and found out by polling only",
    remedy: `aws secretsmanager put-secret-value --secret-id ${arn} --secret-string "[\\"$(openssl rand -hex 32)\\"]"`,
  };
}

export function judgeTick({ function: name, lastAt }: Tick, { at }: Told): CheckOutcome {
  const remedy = `aws lambda invoke --function-name ${name} /dev/stdout   (runs it now, and says what fails)`;
  const nothing = "nothing that is due is done: docs/runbook.md, Silent timer";
  if (lastAt === undefined)
    return {
      state: "wrong",
      found: "never",
      problem: `no tick got through yet, as in the first minute of an installation; ${nothing}`,
      remedy,
    };
  const found = `${formatAge(lastAt, new Date(at))} ago`;
  if (secondsBetween(lastAt, at) <= silentSeconds) return { state: "ok", found };
  return { state: "wrong", found, problem: `the timer is silent; ${nothing}`, remedy };
}

export function judgeDueWork({ rows, oldest }: DueWork, { at }: Told): CheckOutcome {
  if (oldest === undefined) return { state: "ok", found: "nothing waits" };
  const found = `${rows} ${rows === 1 ? "row" : "rows"}, the oldest since ${oldest.since}`;
  if (secondsBetween(oldest.since, at) <= stuckSeconds) return { state: "ok", found };
  const problem = `${oldest.row.pk} ${oldest.row.sk} is due, and no tick claims it: a newer version wrote it, or more is due than ticks get to; docs/runbook.md, Rows of a newer version`;
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

export function judgeDeadLetters(queues: readonly DeadLetters[]): CheckOutcome {
  const full = queues.filter(({ messages }) => messages > 0);
  const [first] = full;
  if (first === undefined) return { state: "ok", found: "none" };
  const found = full.map(({ of, messages }) => `${of} ${messages}`).join(", ");
  // Nothing of the schedule's is to be sent again: the next minute asks anew.
  const remedy =
    first.of === "tick"
      ? `aws sqs purge-queue --queue-url ${first.queueUrl}   (once they are read)`
      : `aws sqs start-message-move-task --source-arn ${first.queueArn}   (once their cause is gone)`;
  return { state: "wrong", found, problem: "messages were not worked off; the function's log says why", remedy };
}

export function judgeConcurrency({ account, deployedFor, desired, clusters }: AccountConcurrency): CheckOutcome {
  const found = `${account} in the account, deployed for ${deployedFor}`;
  const wants = `${clusters} clusters want ${desired} concurrent executions of Lambda`;
  if (account < desired) {
    const remedy = `aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value ${desired}`;
    return { state: "wrong", found, problem: `${wants}, and the account has ${account}`, remedy };
  }
  if (deployedFor >= desired) return { state: "ok", found };
  const problem = `${wants}, and the stacks were deployed for ${deployedFor} (setting concurrency)`;
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
