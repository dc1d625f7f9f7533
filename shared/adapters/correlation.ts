/**
 * One id for everything that follows from one start: a push, an API call, or a tick. It travels with messages as an
 * attribute, and every log line contains it. Like the messages, it is only a hint: when it is lost, work continues
 * under another id.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";

/** Name of the message attribute. */
export const correlationAttribute = "correlationId";

const begunBy = ["push", "api", "tick"] as const;
export type Beginning = (typeof begunBy)[number];

const current = new AsyncLocalStorage<string>();

/** `push-20261123T061254Z-1f8a90c2`: the kind of start, its time, and a random part. */
export function newCorrelation(beginning: Beginning, at: Date): string {
  const second = `${at.toISOString().slice(0, 19)}Z`.replaceAll(/[-:]/g, "");
  return `${beginning}-${second}-${randomUUID().slice(0, 8)}`;
}

/** Everything that is logged and sent during the work has this id; without an id, none. */
export function underCorrelation<T>(id: string | undefined, work: () => T): T {
  return id === undefined ? work() : current.run(id, work);
}

/** The id of the current work. */
export function currentCorrelation(): string | undefined {
  return current.getStore();
}

/**
 * The id for work that several messages caused: the last one that a person started, because a tick only says that it
 * was time.
 */
export function leadingCorrelation(ids: readonly (string | undefined)[]): string | undefined {
  const known = ids.filter((id) => id !== undefined);
  return known.findLast((id) => !id.startsWith("tick-")) ?? known.at(-1);
}

/** The time of the start, to the second; undefined when the text is not an id of Starling. */
export function beginningOf(id: string): { readonly by: Beginning; readonly at: Date } | undefined {
  const parts = /^(?<by>[a-z]+)-(?<date>\d{8})T(?<time>\d{6})Z-[0-9a-f]{8}$/.exec(id)?.groups;
  const by = begunBy.find((each) => each === parts?.by);
  if (parts === undefined || by === undefined) return undefined;
  const { date = "", time = "" } = parts;
  const day = `${date.slice(0, 4)}-${date.slice(4, 6)}-${date.slice(6)}`;
  const at = new Date(`${day}T${time.slice(0, 2)}:${time.slice(2, 4)}:${time.slice(4)}Z`);
  return Number.isNaN(at.getTime()) ? undefined : { by, at };
}
