import { requireRegion } from "#cli/access/require-region.ts";
import { type Context, readContexts, writeContexts } from "#cli/session/contexts.ts";
import { isOnLoopback, regionInName } from "#cli/session/endpoint-names.ts";
import { CliFailure, usageFailure } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { stackOutputs } from "#cli/session/stack-outputs.ts";
import { defined } from "#shared/base/defined.ts";
import { quoted } from "#shared/base/shell-word.ts";

export interface ContextAddOptions {
  /** Output `ApiUrl` of the control stack. */
  readonly url?: string;
  /** The control stack, whose outputs have the address. */
  readonly stack?: string;
  readonly role?: string;
}

/** Names that kubectl and shells accept without quotes. */
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const rolePattern = /^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,512}$/;

/**
 * Adds a context, or changes the one with the same name and address, and makes it current. The installation is not asked.
 * With `--stack`, the address is read from CloudFormation.
 */
export async function contextAdd(session: Session, name: string, options: ContextAddOptions): Promise<"done"> {
  if (!namePattern.test(name)) {
    throw usageFailure(
      `NAME is "${name}"; expected at most 63 letters, digits, dots, dashes and underscores`,
      "starling context add prod --stack starling-control",
    );
  }
  const { profile, namespace } = session.options;
  if (options.role !== undefined && !rolePattern.test(options.role)) {
    throw usageFailure(
      `--role is "${options.role}"; expected the ARN of a role`,
      "--role arn:aws:iam::111122223333:role/starling-operator",
    );
  }
  const place = await placeOf(session, name, options);
  const { endpoint, region } = place;
  const file = readContexts(session.io);
  const before = file.contexts[name];
  if (before !== undefined && before.endpoint !== endpoint) {
    throw new CliFailure(`context ${name} exists for another installation: ${before.endpoint}`, {
      exit: "no",
      next: `starling context remove ${name}   (or choose another name)`,
    });
  }
  // Settings that are not given stay: reading the address again keeps the namespace.
  const context: Context = {
    ...before,
    ...place,
    ...defined({ namespace, role: options.role }),
    ...(profile === undefined ? {} : { credentials: { profile } }),
  };
  writeContexts(session.io, { contexts: { ...file.contexts, [name]: context }, current: name });
  session.io.out(
    `context ${name} ${before === undefined ? "added" : "changed"}, and current (${region}, ${endpoint})\n`,
  );
  session.note("  next: starling doctor");
  return "done";
}

type Place = Pick<Context, "endpoint" | "region" | "stack">;

async function placeOf(session: Session, name: string, { url, stack }: ContextAddOptions): Promise<Place> {
  if ((url === undefined) === (stack === undefined)) {
    const given = url === undefined ? "neither --stack nor --url is given" : "both --stack and --url are given";
    throw usageFailure(`${given}; expected one of them`, `starling context add ${name} --stack starling-control`);
  }
  if (stack !== undefined) return placeOfStack(session, stack);
  const endpoint = endpointOf(url ?? "", "--url");
  const [desired, there] = [session.options.region, regionInName(endpoint)];
  if (desired !== undefined && there !== undefined && desired !== there) {
    const message = `--region is "${desired}", but ${endpoint} is in ${there}, and refuses requests that are signed for another region`;
    throw usageFailure(message, `--region ${there}, or no --region`);
  }
  const region = desired ?? there ?? session.io.env.AWS_REGION;
  if (region !== undefined) {
    if (!isOnLoopback(endpoint)) requireRegion(region, desired === undefined ? endpoint : "--region");
    return { endpoint, region };
  }
  throw usageFailure(
    `no region is given: ${endpoint} does not name one, and AWS_REGION is not set`,
    "add --region REGION",
  );
}

/** @throws CliFailure when the stack has no API. */
async function placeOfStack({ options, signal }: Session, stack: string): Promise<Place> {
  const { profile, region: desired } = options;
  const answer = await stackOutputs({ stack, signal, ...defined({ profile, region: desired }) });
  const { outputs, status, region } = answer;
  if (outputs.ApiUrl !== undefined) {
    return { endpoint: endpointOf(outputs.ApiUrl, `output ApiUrl of stack ${stack}`), region, stack };
  }
  const message = `stack ${stack} has no output ApiUrl (${region}, ${status})`;
  if (status.endsWith("_COMPLETE") && !status.includes("ROLLBACK")) {
    throw usageFailure(message, "name the control stack (its default name is starling-control)");
  }
  const next =
    /^(CREATE|UPDATE)_/.test(status) && status.endsWith("_IN_PROGRESS")
      ? `aws cloudformation wait stack-create-complete --stack-name ${quoted(stack)} --region ${quoted(region)}, then again`
      : `npx cdk deploy ${quoted(stack)}, then again`;
  throw new CliFailure(message, { exit: "unknown", next });
}

/** @throws CliFailure when requests may not be sent to this address. */
function endpointOf(text: string, given: string): string {
  const url = URL.parse(text);
  const refuse = (why: string) =>
    usageFailure(`${given} is "${text}"; ${why}`, "the output ApiUrl of the control stack: https://….amazonaws.com");
  if (url === null) throw refuse("expected an https URL");
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isOnLoopback(url.href))) {
    throw refuse("expected https: anybody on the network can read and answer other requests");
  }
  if (url.username !== "" || url.password !== "")
    throw refuse("expected an address without user and password, because requests are signed");
  if (url.search !== "" || url.hash !== "") throw refuse("expected an address without query and fragment");
  return url.href.replace(/\/+$/, "");
}
