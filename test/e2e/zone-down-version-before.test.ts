/** A planner of the version before meets clusters whose zone this version found down: they do not fail there. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { functionCode } from "#local/machine/function-code.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { configMap, groupDocument, namespaceManifest, sourceDocument } from "#test/support/e2e-documents.ts";
import { startWorld, type World } from "#test/support/e2e-world.ts";
import { hasVersionBefore, type VersionBefore, versionBefore } from "#test/support/version-before.ts";

const files = (color: string) => ({ "deploy/web.yaml": namespaceManifest + configMap("web", { color }) });

describe.runIf(hasVersionBefore())("beside the version before", () => {
  let before: VersionBefore;
  let world: World;
  let version: "before" | "this" = "this";
  /** Calls of functions of the version before. */
  const calls = new Map<string, number>();

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
        if (!["rollout", "apply", "report"].includes(folder)) return now;
        return {
          check: now.check,
          wire(variables, aws, options) {
            const handlers = { before: old?.wire(variables, aws, options), this: now.wire(variables, aws, options) };
            return (event, context) => {
              if (version === "before") calls.set(folder, (calls.get(folder) ?? 0) + 1);
              return (handlers[version] ?? handlers.this)(event, context);
            };
          },
        };
      },
    });
  });
  afterAll(async () => {
    await world.close();
    before.remove();
  });

  test("a cluster whose zone is down does not fail there, and catches up with this version", async () => {
    await world.join({ name: "c1" }, { name: "c2" });
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
    const spoke = world.machine.zones.get("spoke") ?? [];
    const apply = [...(world.machine.sources.get("apply") ?? []), ...(world.machine.sources.get("applySlow") ?? [])];
    const home = apply.filter((source) => !spoke.includes(source));
    await Promise.all(home.map((source) => source.pause()));
    const second = await world.push("shop", files("blue"));
    await world.waitFor(
      "home is found down",
      async () => (await world.group("web")).status.clusters?.unreachable === 2,
    );
    version = "before";
    for (const source of home) source.resume();
    await world.waitFor("the version before was called", async () =>
      ["rollout", "apply"].every((folder) => (calls.get(folder) ?? 0) > 3),
    );
    expect((await world.group("web")).status.clusters).toMatchObject({ failed: 0, unreachable: 2 });
    const rows = (await world.rows()).filter((row) => row.type === "SyncOnCluster") as unknown as readonly SyncRow[];
    expect(rows.map(({ stateSk }) => stateSk)).toEqual(["Unreachable#c1#web.web", "Unreachable#c2#web.web"]);
    version = "this";
    await world.untilInSync("web", second);
  });
});
