import type { ApiPorts } from "#functions/api/request/api-ports.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { defined } from "#shared/base/defined.ts";
import { isConflict } from "#shared/base/errors.ts";
import type { CheckRow, ZoneCheckRow } from "#shared/fleet/rows/check-row.ts";
import { expiryOf } from "#shared/fleet/rows/expiry.ts";
import { type RowKeyOf, rowSchema } from "#shared/fleet/rows/row.ts";
import type { Message } from "#shared/messages.ts";

/** Callers within this time wait for the same answer; after that the message may be lost, and another one is sent. */
const patienceMs = 20_000;
/** Seconds for which an answer counts, because it describes one moment. */
const keptSeconds = 86_400;
const maxTries = 5;

type AskedRow = CheckRow | ZoneCheckRow;

export interface Question<Asked extends AskedRow> {
  readonly key: RowKeyOf<Asked["type"]>;
  readonly type: Asked["type"];
  /** The object of the check, in words. */
  readonly about: string;
  readonly asked: Omit<Asked["asked"], "id" | "at">;
  /** Wakes the worker that answers. */
  readonly message: Message;
}

/** Writes a request for a check and wakes a worker, unless a request waits for its answer. @returns the id of the answer. */
export async function askOnce<Asked extends AskedRow>(
  { table, clock, ids, sender }: ApiPorts,
  question: Question<Asked>,
): Promise<string> {
  const { key, type, about, message } = question;
  for (let attempt = 1; attempt <= maxTries; attempt++) {
    const before = (await table.get(key)) as Asked | undefined;
    const now = clock.now();
    const waits = before !== undefined && before.answer?.id !== before.asked.id;
    if (waits && Date.parse(before.asked.at) + patienceMs > now.getTime()) return before.asked.id;
    const row = {
      ...key,
      type,
      schema: rowSchema,
      version: (before?.version ?? 0) + 1,
      asked: { id: ids.unique(), at: now.toISOString(), ...question.asked },
      ...defined({ answer: before?.answer }),
      expiresAt: expiryOf(now, keptSeconds),
    } as AskedRow;
    try {
      await table.write([{ put: row, when: before === undefined ? "absent" : { version: before.version } }]);
    } catch (error) {
      if (isConflict(error)) continue;
      throw error;
    }
    await sender.send([message]);
    return row.asked.id;
  }
  throw refusal("Conflict", `many ask for a check of ${about} at once; try again`);
}
