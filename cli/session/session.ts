import { setTimeout as sleep } from "node:timers/promises";
import { type Output, withoutHeaders } from "#cli/output/output.ts";
import { type ApiClient, type AwsKeys, createApiClient } from "#cli/session/api-client.ts";
import { chooseContext, findContext, type NamedContext } from "#cli/session/contexts.ts";
import { credentialsOf, ownCredentials } from "#cli/session/credentials.ts";
import { CliFailure, usageFailure } from "#cli/session/failure.ts";
import type { GuardedIo } from "#cli/session/io.ts";
import type { DocumentNamespace } from "#cli/session/read-documents.ts";
import { stackOutputs } from "#cli/session/stack-outputs.ts";
import type { SleepingClock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import { durationSeconds } from "#shared/fleet/kinds/quantities.ts";

/** The flags of every command. */
export interface GlobalOptions {
  readonly context?: string;
  readonly profile?: string;
  readonly region?: string;
  readonly namespace?: string;
  readonly allNamespaces?: boolean;
  readonly output?: Output;
  readonly headers?: boolean;
  readonly color?: boolean;
  readonly quiet?: boolean;
  readonly debug?: boolean;
  readonly timeout?: string;
  readonly reason?: string;
  readonly yes?: boolean;
}

/** One run of the command. */
export interface Session {
  readonly io: GuardedIo;
  readonly options: GlobalOptions;
  /** Aborted by Ctrl-C or `--timeout`. */
  readonly signal: AbortSignal;
  readonly api: ApiClient;
  /** @throws CliFailure when neither `-n` nor the context gives a namespace. */
  namespace(): string;
  /** The namespace for documents without one: of `-n`, or of the chosen context, if there is one. */
  documentNamespace(): DocumentNamespace | undefined;
  /** Absent: all namespaces. */
  scope(): string | undefined;
  /** The given ` -n NAMESPACE` or ` -A`, for the next command; empty if the context gives the namespace. */
  where(): string;
  /** Prints a line for people on stderr, unless `-q` is given. */
  note(line: string): void;
  /** @throws CliFailure when no context is chosen. */
  contextName(): string;
  /** Prints the context; called before every write. */
  announce(): void;
  /** Credentials for direct calls of AWS. @throws CliFailure when there are none. */
  awsKeys(): Promise<AwsKeys>;
  /** An output of the control stack, if the context knows the stack. @throws CliFailure of `stackOutputs`. */
  stackOutput(name: string): Promise<string | undefined>;
  pause(milliseconds: number): Promise<void>;
}

/** @throws CliFailure for a flag with an invalid value. */
export function openSession(io: GuardedIo, given: GlobalOptions): Session {
  const options = {
    ...given,
    ...defined({ output: given.headers === false ? withoutHeaders(given.output) : given.output }),
  };
  checkNamespace(options.namespace);
  const signal = signalOf(io, options);
  const note = (line: string) => {
    if (options.quiet !== true) io.err(`${line}\n`);
  };
  const clock: SleepingClock = {
    now: () => io.now(),
    sleep: (milliseconds) => sleep(milliseconds, undefined, { signal }),
  };
  let chosen: NamedContext | undefined;
  const context = (): NamedContext => {
    chosen ??= withRegion(chooseContext(io, options.context), options.region);
    return chosen;
  };
  let client: ApiClient | undefined;
  const api: ApiClient = {
    call(call) {
      client ??= createApiClient({
        context: context(),
        credentials: credentialsOf(context(), options.profile),
        signal,
        clock,
        trace: (line) => {
          if (options.debug === true) io.err(`${line}\n`);
        },
      });
      return client.call(call);
    },
  };
  const known = () => options.namespace ?? context().context.namespace;
  return {
    io,
    options,
    signal,
    api,
    note,
    namespace() {
      const namespace = known();
      if (namespace !== undefined) return namespace;
      throw usageFailure(
        "no namespace is given, and the context has none",
        "add -n NAMESPACE   (or -A, for a list of all namespaces)",
      );
    },
    documentNamespace() {
      if (options.namespace !== undefined) return { name: options.namespace, saidBy: "flag" };
      const name = findContext(io, options.context)?.context.namespace;
      return name === undefined ? undefined : { name, saidBy: "context" };
    },
    scope() {
      if (options.allNamespaces === true) return undefined;
      const namespace = known();
      if (namespace !== undefined) return namespace;
      throw usageFailure("no namespace is given, and the context has none", "add -n NAMESPACE, or -A for all");
    },
    where() {
      if (options.allNamespaces === true) return " -A";
      return options.namespace === undefined ? "" : ` -n ${options.namespace}`;
    },
    contextName: () => context().name,
    announce() {
      const { name, context: where } = context();
      note(`context ${name} (${where.region}, ${where.endpoint})`);
    },
    async awsKeys() {
      const { name, context: where } = context();
      // The keys of a local machine are not valid in AWS.
      if (where.sts !== undefined && options.profile === undefined) throw notOfAws(name);
      return ownCredentials(where.credentials, options.profile)();
    },
    async stackOutput(name) {
      const { stack, region, credentials } = context().context;
      if (stack === undefined) return undefined;
      const profile =
        options.profile ?? (credentials !== undefined && "profile" in credentials ? credentials.profile : undefined);
      const asked = { stack, region, signal, ...defined({ profile }) };
      return (await stackOutputs(asked)).outputs[name];
    },
    pause: clock.sleep,
  };
}

function notOfAws(context: string): CliFailure {
  return new CliFailure(
    `AWS was not called: context ${context} belongs to a local machine, and its keys are not valid in AWS`,
    {
      exit: "wrongInput",
      next: "starling local kubeconfig   (for --kube-context NAME; for AWS, --profile NAME)",
    },
  );
}

/** Refuses an invalid name here, because the API's answer would be about a path. */
function checkNamespace(namespace: string | undefined): void {
  if (namespace === undefined || nameSchema.safeParse(namespace).success) return;
  throw usageFailure(
    `-n is "${excerpt(namespace)}"; expected 1 to 63 characters of a-z, 0-9 and -, beginning and ending with a letter or digit`,
    "-n payments",
  );
}

function signalOf(io: GuardedIo, options: GlobalOptions): AbortSignal {
  if (options.timeout === undefined) return io.interrupted;
  const seconds = durationSeconds(options.timeout);
  if (seconds === undefined || seconds < 1) {
    throw usageFailure(`--timeout is "${options.timeout}"; expected a duration such as 30s or 5m`, "--timeout 5m");
  }
  return AbortSignal.any([io.interrupted, AbortSignal.timeout(seconds * 1000)]);
}

function withRegion(chosen: NamedContext, region: string | undefined): NamedContext {
  return region === undefined ? chosen : { ...chosen, context: { ...chosen.context, region } };
}
