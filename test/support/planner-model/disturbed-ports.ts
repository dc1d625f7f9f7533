import { createRandom } from "#local/base/random.ts";
import type { Message } from "#shared/messages.ts";
import type { IndexEntry, IndexQuery, MessageSender, Page, Table, Write } from "#shared/ports.ts";

/** Far more calls than a run for a small fleet needs. */
const ofSmallFleets = 3000;

/** The process has died, and nothing that it does after this has an effect. */
export class Crash extends Error {}

export interface Disturbance {
  /** The most calls of one run of the planner. A run with more calls is taken for endless. */
  readonly mostCalls?: number;
  /** The seed of each call's duration, in turns of the event loop's microtasks. */
  readonly jitter?: number;
  /** The n-th call (from 1) of the table or the sender is the last one, and fails before or after its effect. */
  readonly crash?: { readonly at: number; readonly when: "before" | "after" };
  /** Runs or prevents the effect of each call that writes or sends. @param writes - empty for a call that sends. */
  readonly around?: <T>(effect: () => Promise<T>, writes: readonly Write[]) => Promise<T>;
  /** Actions just before the n-th call. */
  readonly midst?: readonly { readonly at: number; readonly act: () => Promise<void> }[];
}

/** The table and the queues as one process sees them: its calls are slow, interrupted, or end at any point. */
export class DisturbedPorts {
  readonly table: Table;
  readonly sender: MessageSender;
  readonly #disturbance: Disturbance;
  readonly #random: ReturnType<typeof createRandom>;
  #calls = 0;

  constructor(real: { readonly table: Table; readonly sender: MessageSender }, disturbance: Disturbance) {
    this.#disturbance = disturbance;
    this.#random = createRandom(disturbance.jitter ?? 0);
    const { table, sender } = real;
    const call = this.#call.bind(this);
    const { around = (effect) => effect() } = disturbance;
    this.table = {
      get: (key) => call(() => table.get(key)),
      getMany: (keys, reading) => call(() => table.getMany(keys, reading)),
      query: (query) => call(() => table.query(query)),
      queryIndex: (query: IndexQuery) => call(() => table.queryIndex(query)),
      write: (writes: readonly Write[]) => call(() => around(() => table.write(writes), writes)),
      update: (write) => call(() => around(() => table.update(write), [write])),
    };
    this.sender = {
      send: (messages: readonly Message[]) => call(() => around(() => sender.send(messages), [])),
    };
  }

  async #call<T>(work: () => Promise<T>): Promise<T> {
    const { crash, midst = [], mostCalls = ofSmallFleets } = this.#disturbance;
    const call = ++this.#calls;
    if (call > mostCalls) throw new Error("the planner never ends");
    await this.#wait();
    for (const { at, act } of midst) if (at === call) await act();
    if (crash !== undefined && (call > crash.at || (call === crash.at && crash.when === "before"))) throw new Crash();
    const result = await work();
    if (crash?.at === call) throw new Crash();
    await this.#wait();
    return result;
  }

  async #wait(): Promise<void> {
    if (this.#disturbance.jitter === undefined) return;
    for (let turns = this.#random.integer(0, 12); turns > 0; turns--) await Promise.resolve();
  }
}

/** A table whose index reads answer from an older state. */
export function lagging(table: Table, older: Table): Table {
  return {
    get: (key) => table.get(key),
    getMany: (keys) => table.getMany(keys),
    query: (query) => table.query(query),
    queryIndex: (query: IndexQuery): Promise<Page<IndexEntry>> => older.queryIndex(query),
    write: (writes) => table.write(writes),
    update: (write) => table.update(write),
  };
}
