/** Hooks that only serve other hooks: the account, role and settings of a Job, as in the charts of admission webhooks. */
import { expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { byHand } from "#test/support/kube-call.ts";
import { type JobEnd, playControllers } from "#test/support/played-cluster.ts";

const worker = forEachTest(startPatientWorker);

const hook = (events: string) => ({
  "helm.sh/hook": events,
  "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
});
const before = hook("pre-install,pre-upgrade");
const after = hook("post-install,post-upgrade");
const both = hook("pre-install,pre-upgrade,post-install,post-upgrade");

function account(annotations: Readonly<Record<string, string>>): ManifestObject {
  return { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "account", namespace: "shop", annotations } };
}

function job(name: string, annotations: Readonly<Record<string, string>>): ManifestObject {
  const template = {
    spec: { restartPolicy: "Never", serviceAccountName: "account", containers: [{ name: "m", image: "m:1" }] },
  };
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name, namespace: "shop", annotations },
    spec: { template },
  };
}

const chart = (version: string) => [
  namespace("shop"),
  account(both),
  job("create", before),
  configMap("shop/settings", { version }),
  job("patch", after),
];

/** The names of objects that were made, and `-name` for objects that were deleted. */
function madeAndDeleted(): readonly string[] {
  return worker.host.requests().flatMap(({ method, path, status, result, userAgent }) => {
    const name = path.split("/").at(-1) ?? "";
    if (userAgent === "e2e-by-hand" || status >= 300 || path.includes("starling-system")) return [];
    if (method === "DELETE") return [`-${name}`];
    return method === "PATCH" && result === 201 ? [name] : [];
  });
}

async function until(phase: string, endOf?: (name: string) => JobEnd): Promise<void> {
  const [connection] = worker.host.connections();
  if (connection === undefined) throw new Error("there is no cluster");
  const patch = (path: string, body: JsonObject) => byHand(connection, { method: "PATCH", path, body });
  for (let check = 0; check < 40; check++) {
    await worker.world.work();
    if ((await worker.world.phase("web")) === phase) return;
    await playControllers(worker.host.objects("c1"), patch, endOf);
    worker.world.aheadMs += 70_000;
  }
  throw new Error(`it is not ${phase}: ${JSON.stringify((await worker.observed()).message)}`);
}

test("an account that hooks before and after an apply need exists from the first hook to the last", async () => {
  await worker.world.assign("web", chart("1"));
  await until("Ready");
  const ended = ["-create", "-patch", "-account"];
  const first = ["shop", "account", "create", "settings", "patch", ...ended];
  expect(madeAndDeleted()).toEqual(first);
  expect(worker.members()).toEqual(["ConfigMap settings", "Namespace shop"]);

  await worker.world.assign("web", chart("2"));
  await until("Ready");
  expect(madeAndDeleted().slice(first.length)).toEqual(["account", "create", "patch", ...ended]);
});

test.each([
  ["before", "create", before],
  ["before and after", "create", both],
  ["before and after", "patch", both],
])(
  "an account for hooks %s an apply, deleted when the Job %s failed, is made again for the next attempt",
  async (_when, failing, annotations) => {
    const objects = chart("1").map((object) => (object.kind === "ServiceAccount" ? account(annotations) : object));
    await worker.world.assign("web", objects);
    await until("Failed", (name) => (name === failing ? "Failed" : "Complete"));
    expect(await worker.observed()).toMatchObject({ reason: "HookFailed" });
    expect(madeAndDeleted()).toContain("-account");

    const begun = madeAndDeleted().length;
    await worker.world.assign("web", objects);
    await until("Ready");
    const again = madeAndDeleted().slice(begun);
    expect(again).toContain("account");
    expect(again.indexOf("account")).toBeLessThan(again.indexOf(failing));
    expect(again.lastIndexOf("-account")).toBeGreaterThan(again.indexOf(failing));
    expect(worker.members()).toEqual(["ConfigMap settings", "Namespace shop"]);
  },
);
