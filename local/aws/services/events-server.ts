import { randomUUID } from "node:crypto";
import * as z from "zod";
import type { Principals } from "#local/aws/iam/principals.ts";
import type { EventStore } from "#local/aws/services/event-store.ts";
import {
  type JsonAnswer,
  type JsonRequest,
  type RunningService,
  startJsonService,
} from "#local/aws/services/json-service.ts";
import { isJsonObject } from "#shared/base/json.ts";
import { jsonOf } from "#shared/base/json-of.ts";

export interface EventsServerOptions {
  readonly principals: Pick<Principals, "find">;
  readonly store: EventStore;
  /** Names of the buses that exist. */
  readonly buses: readonly string[];
  /** The error code of an entry that is refused, for tests. The default accepts all. */
  readonly refuse?: (entry: PutEntry) => string | undefined;
  /** The default is any free port. */
  readonly port?: number;
}

/** The limits of EventBridge. */
const maxBodyBytes = 1024 * 1024;
const mostEntries = 10;

const entrySchema = z.strictObject({
  Source: z.string().min(1),
  DetailType: z.string().min(1).max(128),
  /** Seconds since 1970. */
  Time: z.number(),
  Detail: z.string(),
  EventBusName: z.string().min(1),
});
const requestSchema = z.strictObject({ Entries: z.array(entrySchema).min(1).max(mostEntries) });

export type PutEntry = z.infer<typeof entrySchema>;

/** EventBridge on 127.0.0.1, reduced to PutEvents. It has no rules: the store keeps what the buses took. */
export async function startEvents(options: EventsServerOptions): Promise<RunningService> {
  const { principals, store, buses, refuse, port } = options;

  function put(entry: PutEntry): object {
    const detail = jsonOf(entry.Detail);
    const code =
      refuse?.(entry) ??
      (!isJsonObject(detail)
        ? "MalformedDetail"
        : !buses.includes(nameOf(entry.EventBusName))
          ? "ResourceNotFoundException"
          : entry.Source.startsWith("aws.")
            ? "NotAuthorizedForSourceException"
            : undefined);
    if (code !== undefined) return { ErrorCode: code, ErrorMessage: `the entry is refused: ${code}` };
    const EventId = randomUUID();
    store.put({
      eventId: EventId,
      bus: nameOf(entry.EventBusName),
      source: entry.Source,
      detailType: entry.DetailType,
      time: new Date(entry.Time * 1000).toISOString(),
      detail,
    });
    return { EventId };
  }

  function answer({ target, body }: JsonRequest): JsonAnswer {
    if (target !== "AWSEvents.PutEvents") {
      const message = `the local EventBridge does not support ${target}`;
      return { status: 400, body: { __type: "UnknownOperationException", message } };
    }
    const parsed = requestSchema.safeParse(jsonOf(body.toString()));
    if (!parsed.success) {
      return { status: 400, body: { __type: "ValidationException", message: parsed.error.message } };
    }
    const Entries = parsed.data.Entries.map(put);
    return { status: 200, body: { FailedEntryCount: Entries.filter((one) => "ErrorCode" in one).length, Entries } };
  }

  return startJsonService({ principals, service: "events", version: "1.1", maxBodyBytes, answer, port });
}

/** The name of a bus that is given by its name or ARN. */
function nameOf(bus: string): string {
  return bus.slice(bus.lastIndexOf("/") + 1);
}
