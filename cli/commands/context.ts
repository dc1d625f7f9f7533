import { serialise } from "#cli/format/serialise.ts";
import { formatTable } from "#cli/format/table.ts";
import { isData } from "#cli/output/output.ts";
import { type ContextFile, chooseContext, contextPath, readContexts, writeContexts } from "#cli/session/contexts.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";

export async function contextList(session: Session): Promise<ExitReason> {
  const file = readContexts(session.io);
  const { output, headers } = session.options;
  const items = Object.entries(file.contexts).map(([name, context]) => ({
    name,
    current: name === file.current,
    endpoint: context.endpoint,
    region: context.region,
    ...defined({ namespace: context.namespace }),
  }));
  if (isData(output)) {
    session.io.out(serialise({ kind: "ContextList", metadata: {}, items }, output));
    return "done";
  }
  if (items.length === 0) {
    session.note(
      `there is no context in ${contextPath(session.io)}\n  next: starling context add NAME --stack STACK, or starling local up`,
    );
    return "done";
  }
  const rows = items.map((item) => [
    item.current ? "*" : "",
    item.name,
    item.region,
    item.namespace ?? "-",
    item.endpoint,
  ]);
  const columns = ["CURRENT", "NAME", "REGION", "NAMESPACE", "ENDPOINT"];
  session.io.out(formatTable({ columns, rows }, { headers: headers === false ? "hide" : "show" }));
  return "done";
}

export async function contextUse(session: Session, name: string): Promise<ExitReason> {
  const file = readContexts(session.io);
  contextNamed(file, name);
  writeContexts(session.io, { ...file, current: name });
  session.io.out(`context ${name} is current\n`);
  return "done";
}

/** Shows a context, without keys and certificates. Without a name: the context in use. */
export async function contextShow(session: Session, name: string | undefined): Promise<ExitReason> {
  const chosen = chooseContext(session.io, name ?? session.options.context);
  const { endpoint, region, namespace, credentials, role, stack, caData } = chosen.context;
  const signs =
    credentials === undefined
      ? "the default chain of the AWS SDK"
      : "profile" in credentials
        ? `profile ${credentials.profile}`
        : `key ${credentials.accessKeyId}`;
  const shown = {
    name: chosen.name,
    current: readContexts(session.io).current === chosen.name,
    endpoint,
    region,
    ...defined({ namespace, role, stack }),
    credentials: signs,
    authority: caData === undefined ? "public" : "its own",
    file: contextPath(session.io),
  };
  const { output } = session.options;
  if (isData(output)) {
    session.io.out(serialise(shown, output));
    return "done";
  }
  for (const [label, value] of Object.entries(shown)) session.io.out(`${`${label}:`.padEnd(13)}${value}\n`);
  return "done";
}

/** Removes a context from the file. The installation does not notice. */
export async function contextRemove(session: Session, name: string): Promise<ExitReason> {
  const { contexts, current } = readContexts(session.io);
  contextNamed({ contexts }, name);
  const { [name]: _, ...kept } = contexts;
  writeContexts(session.io, { contexts: kept, ...(current === name ? {} : defined({ current })) });
  session.io.out(`context ${name} removed\n`);
  if (current === name) session.note("  next: starling context use NAME   (no context is current)");
  return "done";
}

/** @throws CliFailure when the file has no context of this name. */
function contextNamed({ contexts }: Pick<ContextFile, "contexts">, name: string): void {
  if (contexts[name] !== undefined) return;
  const known = Object.keys(contexts).join(", ") || "none";
  throw usageFailure(`there is no context "${name}"; known contexts: ${known}`, "starling context list");
}
