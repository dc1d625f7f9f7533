/**
 * The control interface of a machine in the background: HTTP on the loopback interface. It accepts requests with the
 * token in the machine's file, which only its owner can read. A Unix socket would need no token. But its path is
 * limited to 107 bytes, and a state folder may have any path.
 */

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import * as z from "zod";
import type { AlarmControl, AlarmSetting } from "#local/aws/services/alarm-store.ts";
import { LocalFailure } from "#local/base/local-failure.ts";
import { serveOnLoopback } from "#local/base/loopback-server.ts";
import { readBytesUpTo } from "#local/base/read-bytes.ts";
import type { FaultControl } from "#local/faults/fault-control.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { alarmStates } from "#shared/fleet/rows/rollout-rows.ts";

export const controlAddressSchema = z.object({ url: z.string(), token: z.string() });
export type ControlAddress = z.infer<typeof controlAddressSchema>;

export interface ControlServer extends ControlAddress {
  stop(): Promise<void>;
}

const changeSchema = z.strictObject({
  target: z.string(),
  settings: z.array(z.string()),
  seed: z.int().min(0).optional(),
});

const alarmSchema = z.strictObject({
  name: z.string().min(1).max(255),
  state: z.enum(alarmStates),
});
const setAlarmSchema = alarmSchema.extend({ arn: z.string() });

const maxBodyBytes = 1024 * 1024;

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** `GET /faults`, `POST /faults` with a change, `DELETE /faults[?target=T]`, `POST /alarms` with a name and a state. */
export async function startControlServer(faults: FaultControl, alarms: AlarmControl): Promise<ControlServer> {
  const token = randomBytes(24).toString("base64url");
  const listening = await serveOnLoopback((request, response) => {
    answer(request, { faults, alarms, token }).then(({ status, body }) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    });
  });
  return {
    url: listening.origin,
    token,
    stop: () => listening.stop(),
  };
}

interface Served {
  readonly faults: FaultControl;
  readonly alarms: AlarmControl;
  readonly token: string;
}

async function answer(request: IncomingMessage, { faults, alarms, token }: Served): Promise<Answer> {
  if (!isGenuine(request.headers.authorization, token)) return { status: 401, body: { message: "Unauthorized" } };
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://127.0.0.1");
  try {
    if (pathname === "/alarms" && request.method === "POST") {
      const sent = await readBytesUpTo(maxBodyBytes, request);
      if (sent === undefined) return tooLarge;
      return { status: 200, body: alarms.set(alarmSchema.parse(JSON.parse(sent.toString("utf8")))) };
    }
    if (pathname !== "/faults") return { status: 404, body: { message: "Not Found" } };
    switch (request.method) {
      case "GET":
        return { status: 200, body: faults.list() };
      case "POST": {
        const sent = await readBytesUpTo(maxBodyBytes, request);
        if (sent === undefined) return tooLarge;
        const { target, settings, seed } = changeSchema.parse(JSON.parse(sent.toString("utf8")));
        const changed = await faults.set({ target, settings, ...defined({ seed }) });
        return { status: 200, body: [changed] };
      }
      case "DELETE":
        return { status: 200, body: await faults.clear(searchParams.get("target") ?? undefined) };
      default:
        return { status: 405, body: { message: "Method Not Allowed" } };
    }
  } catch (error) {
    if (error instanceof LocalFailure) {
      return { status: 422, body: { message: error.message, exit: error.exit, next: error.next } };
    }
    return { status: 500, body: { message: errorMessage(error) } };
  }
}

const tooLarge: Answer = { status: 413, body: { message: "Request Entity Too Large" } };

function isGenuine(header: string | undefined, token: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(header ?? ""), digest(`Bearer ${token}`));
}

const targetFaultsSchema = z.object({
  target: z.string(),
  seed: z.number(),
  settings: z.array(z.string()),
  injected: z.record(z.string(), z.number()).optional(),
});
const refusalSchema = z.object({
  message: z.string(),
  exit: z.enum(["no", "wrongInput", "unknown"]),
  next: z.string(),
});

export type ListedFaults = z.infer<typeof targetFaultsSchema>;

export type ControlCall =
  | { readonly method: "GET" }
  | { readonly method: "POST"; readonly change: z.infer<typeof changeSchema> }
  | { readonly method: "DELETE"; readonly target: string | undefined };

/**
 * Calls the control server of a machine. @returns the faults of the affected targets. @throws LocalFailure with the
 * reason of a refusal, or when the machine does not answer.
 */
export async function callControl(address: ControlAddress, call: ControlCall): Promise<readonly ListedFaults[]> {
  const query =
    call.method === "DELETE" && call.target !== undefined ? `?target=${encodeURIComponent(call.target)}` : "";
  const body = call.method === "POST" ? { body: JSON.stringify(call.change) } : {};
  return z.array(targetFaultsSchema).parse(await ask(address, `/faults${query}`, { method: call.method, ...body }));
}

/** Sets the state of an alarm of a machine. @throws LocalFailure when the machine does not answer. */
export async function setAlarm(address: ControlAddress, alarm: AlarmSetting): Promise<ReturnType<AlarmControl["set"]>> {
  return setAlarmSchema.parse(await ask(address, "/alarms", { method: "POST", body: JSON.stringify(alarm) }));
}

async function ask({ url, token }: ControlAddress, path: string, init: RequestInit): Promise<unknown> {
  let status: number;
  let answered: unknown;
  try {
    const response = await fetch(`${url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${token}`, connection: "close" },
    });
    status = response.status;
    answered = await response.json();
  } catch (cause) {
    const message = `the machine does not answer on ${url}: ${errorMessage(cause)}`;
    throw new LocalFailure(message, { exit: "unknown", next: "starling local down", cause });
  }
  if (status === 200) return answered;
  const refusal = refusalSchema.safeParse(answered).data;
  if (refusal !== undefined) throw new LocalFailure(refusal.message, refusal);
  throw new LocalFailure(`the machine answered ${status} on ${url}: ${JSON.stringify(answered)}`, {
    exit: "unknown",
    next: "starling local status",
  });
}
