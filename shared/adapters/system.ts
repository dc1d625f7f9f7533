import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import type { SleepingClock } from "#shared/base/clock.ts";
import type { Ids } from "#shared/ports.ts";

export const systemClock: SleepingClock = { now: () => new Date(), sleep: (milliseconds) => setTimeout(milliseconds) };
export const randomIds: Ids = { unique: () => randomUUID() };
