/** The newest events that a machine's bus took. */
export interface StoredEvent {
  /** EventBridge gives every delivery another one. */
  readonly eventId: string;
  readonly bus: string;
  readonly source: string;
  readonly detailType: string;
  readonly time: string;
  readonly detail: unknown;
}

/** The limit: a machine keeps the events of many days. */
const mostEvents = 2000;

export class EventStore {
  readonly #events: StoredEvent[] = [];

  put(event: StoredEvent): void {
    this.#events.push(event);
    if (this.#events.length > mostEvents) this.#events.splice(0, this.#events.length - mostEvents);
  }

  /** The oldest first. */
  list(): readonly StoredEvent[] {
    return [...this.#events];
  }
}
