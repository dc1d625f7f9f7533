/** An event for programs outside Starling. */
export interface BusEvent {
  readonly type: string;
  readonly time: string;
  /** With an `id` that is the same whenever the event is sent. */
  readonly detail: Readonly<Record<string, unknown>>;
}

/** The `source` of every event on a bus. */
export const eventSource = "starling";
