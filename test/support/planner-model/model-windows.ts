import type { WindowTime } from "#shared/fleet/windows/calendar.ts";

/** Allowed or denied: from some seconds after now for a time, or ten minutes of each half an hour. */
export type ModelTime =
  | { readonly is: "allow" | "deny"; readonly in: number; readonly for: number }
  | { readonly is: "allow" | "deny"; readonly each: "half an hour" };

interface ModelWindow {
  /** The ring that it covers, or all clusters. */
  readonly ring: number | undefined;
  readonly times: readonly ModelTime[];
  readonly writtenAt: number;
}

type Windows = ReadonlyMap<string, ModelWindow>;

const openMs = 600_000;
const halfHourMs = 1_800_000;

/** The windows as people have written them, and when they are open, by a calendar of their own. */
export class ModelWindows {
  #windows: Windows = new Map();

  /** @returns the spec for the API. */
  set(name: string, { ring, times }: Pick<ModelWindow, "ring" | "times">, now: Date): object {
    this.#windows = new Map([...this.#windows, [name, { ring, times, writtenAt: now.getTime() }]]);
    const of = (is: ModelTime["is"]) => times.filter((time) => time.is === is).map((time) => timeOf(time, now));
    const clusters = ring === undefined ? { all: true } : { selector: { matchLabels: { ring: `r${ring}` } } };
    return { clusters, allow: of("allow"), deny: of("deny") };
  }

  drop(name: string): void {
    this.#windows = new Map([...this.#windows].filter(([other]) => other !== name));
  }

  names(): readonly string[] {
    return [...this.#windows.keys()];
  }

  /** The windows as they are now. */
  now(): Windows {
    return this.#windows;
  }
}

function timeOf(time: ModelTime, now: Date): WindowTime {
  if ("each" in time) return { cron: "*/30 * * * *", duration: "10m", timeZone: "UTC" };
  const at = (seconds: number) => new Date(now.getTime() + seconds * 1000).toISOString();
  return { start: at(time.in), end: at(time.in + time.for) };
}

function isAt(time: ModelTime, { writtenAt }: ModelWindow, at: number): boolean {
  if ("each" in time) return at % halfHourMs < openMs;
  const from = writtenAt + time.in * 1000;
  return from <= at && at < from + time.for * 1000;
}

/** Whether changes of a cluster of this ring may start then. */
export function isOpenAt(windows: Windows, ring: string | undefined, at: number): boolean {
  const own = [...windows.values()].filter((window) => window.ring === undefined || `r${window.ring}` === ring);
  const times = own.flatMap((window) => window.times.map((time) => ({ is: time.is, now: isAt(time, window, at) })));
  const allowed = times.filter(({ is }) => is === "allow");
  return !times.some(({ is, now }) => is === "deny" && now) && (allowed.length === 0 || allowed.some(({ now }) => now));
}
