import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { objectKey, objectText } from "#functions/api/request/reference.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { audit, sendSideBySide } from "#functions/api/write/write-object.ts";
import { receiverSources } from "#shared/adapters/receiver-sources.ts";
import { endText } from "#shared/fleet/rows/act-text.ts";
import { pollMessages } from "#shared/messages.ts";

export interface TriggerRequest {
  readonly namespace: string;
  readonly name: string;
  readonly caller: Caller;
}

export interface TriggerAnswer {
  /** Names of the Sources that are polled. */
  readonly polled: readonly string[];
  /** Names of its Sources that are suspended, and are not polled. */
  readonly suspended: readonly string[];
}

/**
 * Polls the Sources of a Receiver as if a sender had named them all. Nothing is written.
 * @throws StarlingError `NotFound`, `Suspended`
 */
export async function triggerReceiver(
  ports: ApiPorts,
  { namespace, name, caller }: TriggerRequest,
): Promise<TriggerAnswer> {
  const reference = { kind: "Receiver", namespace, name } as const;
  const row = await ports.table.get(objectKey(reference));
  if (row?.type !== "Receiver") throw refusal("NotFound", `${objectText(reference)} does not exist`);
  const { suspended } = row.operations;
  if (suspended !== undefined) {
    const message = `${objectText(reference)} is suspended (by ${suspended.by} at ${suspended.at}${endText(suspended)}); resume it first`;
    throw refusal("Suspended", message);
  }
  const sources = await receiverSources(row, ports.table);
  const polled = sources.filter(({ operations }) => operations.suspended === undefined);
  await sendSideBySide(ports, pollMessages(polled));
  audit(ports, { verb: "trigger", caller, reference, before: row.generation, after: row.generation });
  const names = (rows: typeof sources) => rows.map((source) => source.name).sort();
  return { polled: names(polled), suspended: names(sources.filter((source) => !polled.includes(source))) };
}
