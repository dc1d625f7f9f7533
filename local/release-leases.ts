import { DynamoTable } from "#shared/adapters/dynamo-table.ts";
import { keys } from "#shared/domain/rows/keys.ts";
import type { Row } from "#shared/domain/rows/row.ts";
import { isConflict } from "#shared/errors.ts";
import type { AwsClients } from "#shared/lambda/aws-clients.ts";

type LeaseRow = Row & { readonly owner?: string };

/**
 * Lets go of the leases of whoever was killed. To be called before the first worker of a machine whose folder is its own:
 * then nobody of before is still at work. Fences stay, so that who is newer stays known.
 */
export async function releaseLeases(dynamo: AwsClients["dynamo"], tableName: string): Promise<void> {
  const table = new DynamoTable(dynamo, tableName);
  let after: string | undefined;
  do {
    const page = await table.query({ pk: "FLEET", ...(after === undefined ? {} : { after }) });
    const leases = page.items.length === 0 ? [] : await table.getMany(page.items.map(({ sk }) => keys.lease(sk)));
    await Promise.all((leases as readonly LeaseRow[]).map((lease) => release(lease, table)));
    after = page.next;
  } while (after !== undefined);
}

async function release({ pk, sk, owner }: LeaseRow, table: DynamoTable): Promise<void> {
  if (owner === undefined) return;
  const remove = ["owner", "leaseUntil", "begun", "failed", "dueShard", "dueKey", "dispatches"];
  try {
    await table.update({ update: { pk, sk }, remove, when: [{ attribute: "owner", equals: owner }] });
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
}
