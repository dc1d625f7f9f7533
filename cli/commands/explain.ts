import { foldLines } from "#cli/format/fold-lines.ts";
import { serialise } from "#cli/format/serialise.ts";
import { formatTable } from "#cli/format/table.ts";
import { tableStyle } from "#cli/format/table-style.ts";
import { isData } from "#cli/output/output.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { parseKind } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import { describedSchema } from "#shared/fleet/kinds/described-schema.ts";
import { fieldsOf } from "#shared/fleet/kinds/kind-fields.ts";
import { meaningOf } from "#shared/fleet/kinds/meanings.ts";

/** Prints the fields of a kind, or those below `KIND.spec.field`. With `-o json`: the kind's JSON Schema, for editors. */
export async function explain(session: Session, text: string): Promise<ExitReason> {
  const [kindText = "", ...steps] = text.split(".");
  const kind = parseKind(kindText);
  if (kind === "Rollout")
    throw usageFailure(
      "Rollouts have no fields to write: Starling creates them",
      "starling explain syncgroup.spec.rollout",
    );
  const { output } = session.options;
  if (isData(output)) {
    session.io.out(serialise(describedSchema(kind), output));
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
    meaningOf(kind, field.path) ?? "",
  ]);
  const { columns, ...style } = tableStyle(session);
  const table = formatTable({ columns: ["FIELD", "TYPE", "", "MEANS"], rows }, style);
  // The description of a field is never cut.
  const fits = columns === undefined || table.split("\n").every((line) => [...line].length <= columns);
  session.io.out(fits ? table : foldLines(rows.map(inLines).join(""), columns));
  return "done";
}

/** The field with its description below it, for a narrow terminal. */
function inLines([path = "", type = "", given = "", meaning = ""]: readonly string[]): string {
  const head = [path, type, given].filter((part) => part !== "").join("  ");
  return `${head}\n${meaning === "" ? "" : `    ${meaning}\n`}`;
}
