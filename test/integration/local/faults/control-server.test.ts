import { type ClusterHost, startClusterHost } from "@starling/embedded-apiserver";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FaultOptions, hostile, quiet } from "#local/aws/wire/fault-options.ts";
import { createFaultControl } from "#local/faults/fault-control.ts";
import {
  type ControlCall,
  type ControlServer,
  callControl,
  setAlarm,
  startControlServer,
} from "#local/serve/control-server.ts";
import { defined } from "#shared/base/defined.ts";

let host: ClusterHost;
let control: ControlServer;
/** The calls that the fault proxy received. */
const applied: (readonly [FaultOptions, number | undefined])[] = [];
const opened: string[] = [];

const call = (what: ControlCall) => callControl(control, what);
const set = (target: string, settings: readonly string[], seed?: number) =>
  call({
    method: "POST",
    change: { target, settings: [...settings], ...defined({ seed }) },
  });

beforeAll(async () => {
  host = await startClusterHost();
  for (const name of ["canary-1", "broad-1"]) host.addCluster(name);
  control = await startControlServer(
    createFaultControl({
      proxy: { setFaults: (faults, seed) => void applied.push([faults, seed]), injected: () => ({ "sqs:lose": 2 }) },
      clusters: host,
      faults: quiet,
      seed: 1,
      async openPort(cluster) {
        opened.push(cluster);
        await host.openPort(cluster);
      },
    }),
    { set: (alarm) => ({ ...alarm, arn: `arn:${alarm.name}` }) },
  );
});
afterAll(async () => {
  await control.stop();
  await host.stop();
});

describe("the control server", () => {
  test("the control server lists all targets, sets faults of one, and clears them", async () => {
    const none = { seed: 1, settings: [] };
    const injected = { "sqs:lose": 2 };
    expect(await call({ method: "GET" })).toEqual([
      { target: "aws", ...none, injected },
      { target: "clusters/canary-1", ...none },
      { target: "clusters/broad-1", ...none },
    ]);
    expect(await set("aws", ["hostile"], 7)).toEqual([{ target: "aws", seed: 7, settings: ["hostile"], injected }]);
    expect(applied).toEqual([[hostile, 7]]);
    expect(await set("aws", ["sqs.lose=0.5"])).toMatchObject([{ seed: 7, settings: ["hostile", "sqs.lose=0.5"] }]);
    expect(applied.at(-1)).toEqual([{ ...hostile, sqs: { ...hostile.sqs, lose: 0.5 } }, undefined]);

    await set("clusters/canary-1", ["latency=5ms"], 3);
    expect(await set("cluster/canary-1", ["errors=503"])).toEqual([
      { target: "clusters/canary-1", seed: 3, settings: ["latency=5ms", "errors=503"] },
    ]);
    expect(host.faults("canary-1")).toEqual({ seed: 3, latency: { ms: 5 }, errors: { status: 503 } });
    expect(opened).toEqual([]);
    expect(await set("clusters/broad-1", ["network=refused"])).toMatchObject([{ settings: ["network=refused"] }]);
    expect(opened).toEqual(["broad-1"]);

    expect(await call({ method: "DELETE", target: "clusters/canary-1" })).toEqual([
      { target: "clusters/canary-1", ...none },
    ]);
    expect(host.faults("canary-1")).toEqual({});
    expect(await call({ method: "DELETE", target: undefined })).toMatchObject([
      { target: "aws", seed: 7, settings: [] },
      { target: "clusters/canary-1", settings: [] },
      { target: "clusters/broad-1", settings: [] },
    ]);
    expect(applied.at(-1)?.[0]).toEqual(quiet);
  });

  test.each([
    [
      "an unknown cluster",
      "clusters/canry-1",
      ["latency=1s"],
      "did you mean clusters/canary-1?",
      "set clusters/canary-1 ",
    ],
    [
      "a cluster without its prefix",
      "broad-1",
      ["latency=1s"],
      "did you mean clusters/broad-1?",
      "set clusters/broad-1 ",
    ],
    ["an unknown target", "gcp", ["quiet"], "the targets are aws, clusters/canary-1, clusters/broad-1", "set aws "],
    [
      "an empty list of faults for aws",
      "aws",
      [],
      "no fault is given for aws; expected quiet, everyday, hostile, dynamodb.",
      "set aws hostile",
    ],
    [
      "an empty list of faults for a cluster",
      "clusters/broad-1",
      [],
      "expected latency, latency.jitter",
      "latency=500ms",
    ],
    ["an unknown fault", "aws", ["sqs.lost=1"], "did you mean sqs.lose?", "set aws sqs.lose=1"],
  ])("the control server refuses %s", async (_what, target, settings, message, next) => {
    await expect(set(target, settings)).rejects.toMatchObject({
      exit: "wrongInput",
      message: expect.stringContaining(message),
      next: expect.stringContaining(next),
    });
  });

  test("the control server refuses requests without its token", async () => {
    for (const authorization of [undefined, "Bearer ", "Bearer wrong", control.token]) {
      const headers = { ...defined({ authorization }), connection: "close" };
      const answer = await fetch(`${control.url}/faults`, { method: "DELETE", headers });
      expect(answer.status).toBe(401);
    }
    await expect(callControl({ ...control, token: "wrong" }, { method: "GET" })).rejects.toThrow("answered 401");
    await expect(callControl({ url: "http://127.0.0.1:9", token: "x" }, { method: "GET" })).rejects.toMatchObject({
      exit: "unknown",
      next: "starling local down",
    });
  });
});

test("the state of an alarm is set by name, and its ARN is answered", async () => {
  expect(await setAlarm(control, { name: "errors", state: "ALARM" })).toEqual({
    name: "errors",
    state: "ALARM",
    arn: "arn:errors",
  });
  await expect(setAlarm({ ...control, token: "guessed" }, { name: "errors", state: "OK" })).rejects.toThrow("401");
});
