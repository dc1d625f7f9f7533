import { randomUUID } from "node:crypto";
import type { Clock, Ids } from "#shared/ports.ts";

export const systemClock: Clock = { now: () => new Date() };
export const randomIds: Ids = { unique: () => randomUUID() };
