/** The table as it was: what a restore from a backup gives. */
import { DeleteCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { World } from "#test/support/e2e-world.ts";

/** More than the weather lets fail in a row. */
const maxTries = 20;

/** Puts the rows in the place of all that are there; an empty list is a table that was lost. */
export async function restoreTable({ machine, ...world }: Pick<World, "machine" | "rows">, rows: readonly Row[]) {
  const TableName = machine.environment.table;
  const { dynamo } = machine.aws;
  const kept = new Set(rows.map((row) => `${row.pk} ${row.sk}`));
  const gone = (await world.rows()).filter((row) => !kept.has(`${row.pk} ${row.sk}`));
  await Promise.all([
    ...gone.map(({ pk, sk }) => inTheEnd(() => dynamo.send(new DeleteCommand({ TableName, Key: { pk, sk } })))),
    ...rows.map((Item) => inTheEnd(() => dynamo.send(new PutCommand({ TableName, Item })))),
  ]);
}

async function inTheEnd(write: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await write();
      return;
    } catch (error) {
      if (attempt === maxTries) throw error;
    }
  }
}
