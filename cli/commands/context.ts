import { serialise } from "#cli/format/serialise.ts";
import { formatTable } from "#cli/format/table.ts";
import { contextPath, readContexts, writeContexts } from "#cli/session/contexts.ts";
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
  if (output === "json" || output === "yaml") {
    session.io.out(serialise({ kind: "ContextList", metadata: {}, items }, output));
    return "done";
  }
  if (items.length === 0) {
    session.note(`no context in ${contextPath(session.io)}\n  next: starling local up`);
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
  if (file.contexts[name] === undefined) {
    const known = Object.keys(file.contexts).join(", ") || "none";
    throw usageFailure(`there is no context "${name}"; there is ${known}`, "starling context list");
  }
  writeContexts(session.io, { ...file, current: name });
  session.io.out(`context ${name} is current\n`);
  return "done";
}
