/** Workers of the version before in a zone leave its clusters alone until they are deployed, and so do its planner and timer. */

import type { RequestRecord } from "@starling/embedded-apiserver";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { functionCode } from "#local/machine/function-code.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { keyText, newestRowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { configMap, groupDocument, namespaceManifest, sourceDocument } from "#test/support/e2e-documents.ts";
import { startWorld, type World } from "#test/support/e2e-world.ts";
import { hasVersionBefore, type VersionBefore, versionBefore } from "#test/support/version-before.ts";

const files = (color: string) => ({ "deploy/web.yaml": namespaceManifest + configMap("web", { color }) });
/** The part that is of the version before: none, the workers of the zone, or the functions of `home` that choose clusters. */
type Older = "none" | "zone" | "home";
const homeFunctions = ["rollout", "tick", "report"];

interface OldCall {
  readonly folder: string;
  readonly messages: readonly string[];
  readonly returned: number;
}

describe.runIf(hasVersionBefore())("beside the version before", () => {
  let before: VersionBefore;
  let world: World;
  let older: Older = "none";
  const calls: OldCall[] = [];
  const thrown: string[] = [];
  /** Successful requests to the cluster of the zone. */
  let requests: RequestRecord[] = [];

  beforeAll(async () => {
    before = await versionBefore();
    world = await startWorld({
      faults: quiet,
      rate: 30,
      zones: JSON.stringify([
        { name: "spoke", subnets: ["subnet-0a1b2c3d4e5f60718"], securityGroups: ["sg-0a1b2c3d4e5f60718"] },
      ]),
      code: (folder) => {
        const [old, now] = [before.code(folder), functionCode(folder)];
        return {
          check: now.check,
          wire(variables, aws, options) {
            const isOfZone = folder === "apply" && variables.STARLING_ZONE === "spoke";
            const olderHere = isOfZone ? "zone" : homeFunctions.includes(folder) ? "home" : undefined;
            const current = now.wire(variables, aws, options);
            const former = olderHere === undefined ? undefined : old?.wire(variables, aws, options);
            return async (event, context) => {
              if (former === undefined || older !== olderHere) return current(event, context);
              try {
                const answer = await former(event, context);
                const { Records = [] } = event as { readonly Records?: readonly { readonly body: string }[] };
                const { batchItemFailures = [] } = (answer ?? {}) as {
                  readonly batchItemFailures?: readonly unknown[];
                };
                calls.push({ folder, messages: Records.map(({ body }) => body), returned: batchItemFailures.length });
                return answer;
              } catch (error) {
                thrown.push(`${folder}: ${error}`);
                throw error;
              }
            };
          },
        };
      },
    });
    world.fleet.onRequest((request) => {
      if (request.cluster === "s1") requests.push(request);
    });
  });
  afterAll(async () => {
    await world.close();
    before.remove();
  });

  const syncOf = async (cluster: string) =>
    (await world.rows()).find((row) => row.type === "SyncOnCluster" && row.pk === keys.cluster(cluster).pk) as
      | SyncRow
      | undefined;
  async function begin(): Promise<string> {
    await world.join({ name: "c1" }, { name: "s1", zone: "spoke" });
    const first = await world.createRepository("shop", files("red"));
    await world.apply(
      sourceDocument("shop", { git: { url: world.git.url("shop"), ref: { branch: "main" } }, interval: "1m" }),
      groupDocument("web", {
        clusters: { all: true },
        templates: [{ name: "web", source: "shop", path: "deploy" }],
        rollout: { maxConcurrent: 2, maxUnreachable: "100%", progressDeadline: "3m" },
      }),
    );
    await world.untilInSync("web", first);
    return first;
  }

  test("its workers in a zone read no row of the zone's clusters, give nothing back, and the clusters catch up after their deployment", async () => {
    await begin();
    const row = (await world.rows()).find((each) => keyText(each) === keyText(keys.cluster("s1")));
    expect(row).toMatchObject({ schema: newestRowSchema });
    older = "zone";
    requests = [];
    const observed = (await syncOf("s1"))?.observed;
    const second = await world.push("shop", files("blue"));
    await world.waitFor(
      "the zone is found down",
      async () => (await world.group("web")).status.clusters?.unreachable === 1,
    );
    expect((await world.group("web")).status.clusters).toMatchObject({ failed: 0, unreachable: 1 });
    const { id } = await world.session.call<{ readonly id: string }>("POST", "/v1/zones/spoke/check");
    await world.waitFor("the check was taken", async () =>
      calls.some(({ messages }) => messages.some((body) => body.includes('"zone"'))),
    );
    // It wrote nothing: neither to the cluster, nor to the rows of the Sync, nor an answer.
    expect(requests).toEqual([]);
    expect((await syncOf("s1"))?.observed).toEqual(observed);
    const check = await world.session.call<{ readonly answer?: { readonly id: string } }>(
      "GET",
      "/v1/zones/spoke/check",
    );
    expect(check.answer?.id).not.toBe(id);
    // Each message was consumed: none returns, and none becomes a dead letter.
    expect(thrown).toEqual([]);
    expect(calls.filter(({ folder }) => folder === "apply").length).toBeGreaterThan(1);
    expect(calls.filter(({ returned }) => returned > 0)).toEqual([]);
    older = "none";
    await world.untilInSync("web", second);
  });

  test("its planner and timer leave the clusters of zones to the next deployment, beside workers of this version", async () => {
    older = "home";
    calls.length = 0;
    requests = [];
    const synced = await syncOf("s1");
    const third = await world.push("shop", files("green"));
    await world.waitFor("they were called", async () =>
      ["rollout", "tick"].every((folder) => calls.filter((call) => call.folder === folder).length > 5),
    );
    const now = await syncOf("s1");
    expect(now?.desired).toEqual(synced?.desired);
    expect(now?.observed?.phase).toBe("Ready");
    expect(requests.filter(({ method }) => method !== "GET")).toEqual([]);
    older = "none";
    await world.untilInSync("web", third);
  });
});
