import { LRUCache } from "lru-cache";
import type { WebhookPorts } from "#functions/webhook/webhook-ports.ts";
import { errorCode, errorMessage, isConflict } from "#shared/base/errors.ts";
import { deliveriesRow, type LastDeliveries } from "#shared/fleet/rows/deliveries-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";

/** A Receiver records one accepted and one refused delivery in this time, whatever comes. */
const recordedEveryMs = 60_000;
const maxKnown = 2000;

/**
 * Records the last delivery of each Receiver for people. Anybody can send refused requests, so that most of them cost
 * nothing: this process remembers when it asked last, and the row says whether another process wrote meanwhile. The two
 * kinds have times of their own, so that no stranger hides a genuine delivery.
 */
export class DeliveryRecords {
  readonly #ports: Pick<WebhookPorts, "table" | "clock" | "log">;
  readonly #asked = new LRUCache<string, number>({ max: maxKnown });

  constructor(ports: Pick<WebhookPorts, "table" | "clock" | "log">) {
    this.#ports = ports;
  }

  /** @param id - of the Receiver's URL. A failure is logged: the answer to the sender does not depend on it. */
  async record(id: string, delivered: LastDeliveries | undefined): Promise<void> {
    if (delivered === undefined) return;
    const { clock, log } = this.#ports;
    const kind = delivered.refused === undefined ? "accepted" : "refused";
    const now = clock.now().getTime();
    if (now - (this.#asked.get(`${kind} ${id}`) ?? Number.NEGATIVE_INFINITY) < recordedEveryMs) return;
    this.#asked.set(`${kind} ${id}`, now);
    try {
      await this.#write(id, kind, delivered);
    } catch (error) {
      log.warn("a delivery was not recorded", { receiver: id, code: errorCode(error), error: errorMessage(error) });
    }
  }

  async #write(id: string, kind: keyof LastDeliveries, delivered: LastDeliveries, tries = 2): Promise<void> {
    const { table, clock } = this.#ports;
    const before = await table.get(keys.deliveries(id));
    const last = before?.[kind];
    if (last !== undefined && clock.now().getTime() - Date.parse(last.at) < recordedEveryMs) return;
    const put = deliveriesRow(id, before, delivered);
    try {
      await table.write([{ put, when: before === undefined ? "absent" : { version: before.version } }]);
    } catch (error) {
      if (!isConflict(error)) throw error;
      // Another process wrote, perhaps of the other kind.
      if (tries > 1) await this.#write(id, kind, delivered, tries - 1);
    }
  }
}
