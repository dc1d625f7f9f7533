import { type EventBridgeClient, PutEventsCommand, type PutEventsRequestEntry } from "@aws-sdk/client-eventbridge";
import { isNetworkFailure } from "#shared/adapters/aws/network-failure.ts";
import { systemClock } from "#shared/adapters/system.ts";
import type { Clock } from "#shared/base/clock.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { type RetryPolicy, retrying } from "#shared/base/retrying.ts";
import { type BusEvent, eventSource } from "#shared/fleet/outside-event.ts";
import type { EventBus } from "#shared/ports.ts";

/** EventBridge's limit of events in one call. */
const batch = 10;
/** For events that a call did not accept. The SDK retries whole calls itself. */
const policy: RetryPolicy = {
  tries: (error) => (error instanceof StarlingError && error.retry === "transient" ? 3 : 1),
  firstWaitMs: 100,
  jitter: "full",
};
/** Codes of events that the bus may accept later. */
const passing: ReadonlySet<string> = new Set(["ThrottlingException", "InternalFailure", "InternalException"]);

/** After a call without an answer, the bus is asked no sooner: every Source with an event would wait for it in vain. */
const silentSeconds = 30;

export class EventBridgeBus implements EventBus {
  readonly #client: EventBridgeClient;
  readonly #bus: string;
  readonly #clock: Clock;
  #silentUntil = Number.NEGATIVE_INFINITY;

  constructor(client: EventBridgeClient, bus: string, clock: Clock) {
    this.#client = client;
    this.#bus = bus;
    this.#clock = clock;
  }

  async send(events: readonly BusEvent[]): Promise<void> {
    for (const part of inParts(events, batch)) await this.#sendBatch(part);
  }

  async #sendBatch(events: readonly BusEvent[]): Promise<void> {
    let left = events.map((event) => this.#entryOf(event));
    await retrying(policy, { clock: systemClock }, async () => {
      const { Entries = [] } = await this.#put(left);
      const failed = left.filter((_, index) => Entries[index]?.EventId === undefined);
      if (failed.length === 0) return;
      left = failed;
      const codes = [...new Set(Entries.flatMap(({ ErrorCode }) => ErrorCode ?? []))];
      const what = `the bus ${this.#bus} refused ${failed.length} of ${events.length} events: ${codes.join(", ")}`;
      throw new StarlingError(what, {
        code: "SendFailed",
        retry: codes.every((code) => passing.has(code)) ? "transient" : "permanent",
      });
    });
  }

  async #put(Entries: PutEventsRequestEntry[]) {
    if (this.#clock.now().getTime() < this.#silentUntil) {
      const until = new Date(this.#silentUntil).toISOString();
      const message = `EventBridge did not answer, and is not asked for the bus ${this.#bus} until ${until}`;
      throw new StarlingError(message, { code: "SendFailed", retry: "permanent" });
    }
    try {
      return await this.#client.send(new PutEventsCommand({ Entries }));
    } catch (cause) {
      if (isNetworkFailure(cause)) {
        this.#silentUntil = this.#clock.now().getTime() + silentSeconds * 1000;
        const message = `EventBridge did not answer, and may or may not have accepted the events to ${this.#bus}`;
        throw new StarlingError(message, { code: "SendFailed", retry: "permanent", cause });
      }
      const why = `${(cause as Error).name}: ${errorMessage(cause)}`;
      const remedy = "check the setting eventBus, and that the bus exists";
      throw new StarlingError(`the bus ${this.#bus} takes no events: ${why}; ${remedy}`, {
        code: "SendFailed",
        retry: "permanent",
        cause,
      });
    }
  }

  #entryOf({ type, time, detail }: BusEvent) {
    return {
      Source: eventSource,
      DetailType: type,
      Time: new Date(time),
      Detail: JSON.stringify(detail),
      EventBusName: this.#bus,
    };
  }
}
