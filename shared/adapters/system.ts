import { randomUUID } from "node:crypto";
import type { Clock } from "#shared/base/clock.ts";
import type { Ids } from "#shared/ports.ts";

export const systemClock: Clock = { now: () => new Date() };
export const randomIds: Ids = { unique: () => randomUUID() };
