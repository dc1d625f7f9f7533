import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as z from "zod";
import { CliFailure } from "#cli/session/failure.ts";
import type { CliIo } from "#cli/session/io.ts";
import { didYouMean } from "#shared/base/nearest-name.ts";

/** Other members are dropped, not refused, because the SDK adds members to credentials. */
const credentials = z.union([
  z.object({
    accessKeyId: z.string().min(1),
    secretAccessKey: z.string().min(1),
    sessionToken: z.string().min(1).optional(),
  }),
  z.object({ profile: z.string().min(1) }),
]);

const contextSchema = z.strictObject({
  /** Base URL of the installation's API. */
  endpoint: z.url({ protocol: /^https?$/ }),
  region: z.string().min(1),
  namespace: z.string().min(1).optional(),
  /** Absent: the default chain of the AWS SDK. */
  credentials: credentials.optional(),
  /** ARN of a role that is assumed with the credentials. */
  role: z.string().min(1).optional(),
  /** Control stack from whose outputs the address was read. */
  stack: z.string().min(1).optional(),
  /** Address of STS on a machine that runs emulators of AWS. Absent: the region's own address. */
  sts: z.url({ protocol: /^https?$/ }).optional(),
  /** PEM of the endpoint's certificate authority in base64. Absent: the public authorities. */
  caData: z.string().optional(),
});
export type Context = z.infer<typeof contextSchema>;

const fileSchema = z.strictObject({
  contexts: z.record(z.string(), contextSchema),
  current: z.string().optional(),
});
export type ContextFile = z.infer<typeof fileSchema>;

/** `$STARLING_CONFIG`, or `~/.config/starling/config.json`. */
export function contextPath(io: Pick<CliIo, "env">): string {
  const { STARLING_CONFIG, XDG_CONFIG_HOME, HOME } = io.env;
  if (STARLING_CONFIG !== undefined && STARLING_CONFIG !== "") return STARLING_CONFIG;
  return join(XDG_CONFIG_HOME ?? join(HOME ?? ".", ".config"), "starling", "config.json");
}

/** @throws CliFailure when the file is invalid. A missing file has no contexts. */
export function readContexts(io: Pick<CliIo, "env">): ContextFile {
  const path = contextPath(io);
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { contexts: {} };
    throw new CliFailure(`cannot read ${path}: ${(error as Error).message}`, {
      exit: "wrongInput",
      next: `edit ${path}`,
    });
  }
  const parsed = fileSchema.safeParse(value);
  // Without a prototype, so that names such as "constructor" are not contexts.
  if (parsed.success) return { ...parsed.data, contexts: Object.assign(Object.create(null), parsed.data.contexts) };
  const lines = parsed.error.issues.flatMap(problemsOf).map((problem) => `${path}: ${problem}`);
  throw new CliFailure(`${path} is not a context file`, { exit: "wrongInput", lines, next: `edit ${path}` });
}

function problemsOf(issue: z.core.$ZodIssue): readonly string[] {
  if (issue.code !== "unrecognized_keys") return [`${issue.path.join(".")}: ${issue.message}`];
  const known = Object.keys((issue.path.length === 0 ? fileSchema : contextSchema).shape);
  return issue.keys.map((key) => {
    const field = [...issue.path, key].join(".");
    return `${field}: is not a field of a context file${didYouMean(key, known)}; it has ${known.join(", ")}`;
  });
}

/** Replaces the file in one step. Only its owner can read it, because it may hold keys. */
export function writeContexts(io: Pick<CliIo, "env">, file: ContextFile): void {
  const path = contextPath(io);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(file, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(draft, path);
}

export interface NamedContext {
  readonly name: string;
  readonly context: Context;
}

/** @throws CliFailure when there is no context of that name, or no context is chosen. */
export function chooseContext(io: Pick<CliIo, "env">, desired: string | undefined): NamedContext {
  const file = readContexts(io);
  const chosen = findContext(io, desired);
  if (chosen !== undefined) return chosen;
  const next =
    Object.keys(file.contexts).length === 0
      ? "starling context add NAME --stack STACK, or starling local up"
      : "starling context use NAME";
  throw new CliFailure(`no context is chosen in ${contextPath(io)}`, { exit: "unknown", next });
}

/** The chosen context, or undefined when none is chosen. @throws CliFailure when no context has the chosen name. */
export function findContext(io: Pick<CliIo, "env">, desired: string | undefined): NamedContext | undefined {
  const file = readContexts(io);
  const name = desired ?? io.env.STARLING_CONTEXT ?? file.current;
  if (name === undefined) return undefined;
  const context = file.contexts[name];
  if (context === undefined) {
    const known = Object.keys(file.contexts).join(", ") || "none";
    throw new CliFailure(`there is no context "${name}" in ${contextPath(io)}; known contexts: ${known}`, {
      exit: "wrongInput",
      next: "starling context list",
    });
  }
  return { name, context };
}
