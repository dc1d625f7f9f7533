import { serialise } from "#cli/format/serialise.ts";
import { formatTable } from "#cli/format/table.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { parseKind } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import { jsonSchemaOf } from "#shared/fleet/kinds/document.ts";
import { fieldsOf } from "#shared/fleet/kinds/fields.ts";

/** The fields of a kind, or those below `KIND.spec.field`; with `-o json` its JSON Schema, for editors. */
export async function explain(session: Session, text: string): Promise<ExitReason> {
  const [kindText = "", ...steps] = text.split(".");
  const kind = parseKind(kindText);
  if (kind === "Rollout") throw usageFailure("nobody writes rollouts", "starling explain syncgroup.spec.rollout");
  const { output, headers } = session.options;
  if (output === "json" || output === "yaml") {
    session.io.out(serialise(jsonSchemaOf(kind), output));
    return "done";
  }
  const prefix = steps.join(".");
  const bare = (path: string) => path.replaceAll("[]", "");
  const fields = fieldsOf(kind).filter(({ path }) => prefix === "" || `${bare(path)}.`.startsWith(`${prefix}.`));
  if (fields.length === 0) throw usageFailure(`${kind} has no field ${prefix}`, `starling explain ${kindText}`);
  const rows = fields.map((field) => [
    field.path,
    field.type,
    field.required ? "required" : field.default === undefined ? "" : `default ${field.default}`,
  ]);
  session.io.out(
    formatTable({ columns: ["FIELD", "TYPE", ""], rows }, { headers: headers === false ? "hide" : "show" }),
  );
  return "done";
}
