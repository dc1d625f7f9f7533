/**
 * A deployment in the middle of a rollout replaces the functions of the version before one after the other, each between
 * two invocations, while messages, rows and clusters stay. Another deployment goes back.
 */
import type { RequestRecord } from "@starling/embedded-apiserver";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { createRandom, type Random } from "#local/base/random.ts";
import { type FunctionCode, functionCode } from "#local/machine/function-code.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import type { World } from "#test/support/e2e-world.ts";
import { embeddedFleet } from "#test/support/fleet.ts";
import { runSeed } from "#test/support/run-seed.ts";
import { hasVersionBefore, type VersionBefore, versionBefore } from "#test/support/version-before.ts";
import { webWorldOn } from "#test/support/web-world.ts";
import { openWorldCli } from "#test/support/world-cli.ts";

type Version = "before" | "this";

/** Functions that run one version until a deployment begins, and the other version after a few invocations each. */
function deployments(before: VersionBefore, random: Random) {
  const left = new Map<string, number>();
  const served = new Map<string, Version[]>();
  let [from, to]: readonly Version[] = ["before", "before"];

  function versionOf(folder: string): Version {
    const now = left.get(folder) ?? 0;
    left.set(folder, now - 1);
    return (now > 0 ? from : to) ?? "this";
  }

  return {
    /** Begins a deployment. Each function changes after a random number of invocations. */
    deploy(version: Version, mostInvocations: number) {
      [from, to] = [to, version];
      left.clear();
      for (const folder of served.keys()) left.set(folder, random.integer(1, mostInvocations));
    },
    /** The versions that each function ran with since the last call. */
    take(): ReadonlyMap<string, ReadonlySet<Version>> {
      return new Map([...served].map(([folder, all]) => [folder, new Set(all.splice(0))]));
    },
    code(folder: string): FunctionCode {
      const [old, now] = [before.code(folder), functionCode(folder)];
      served.set(folder, []);
      return {
        check: now.check,
        wire(variables, aws, options) {
          const handlers = {
            before: old?.wire(variables, aws, options),
            this: now.wire(variables, aws, options),
          };
          return (event, context) => {
            const version = versionOf(folder);
            served.get(folder)?.push(version);
            return (handlers[version] ?? handlers.this)(event, context);
          };
        },
      };
    },
  };
}

const content = (color: string) => ({ "deploy/settings.yaml": namespaceManifest + configMap("settings", { color }) });
const rings = { canary: 1, broad: 3 };
/** Each round rolls out three revisions in a world of its own, with deployments at other moments. */
const rounds = [1, 2, 3];
const patienceSeconds = 400;
const clusters = Object.entries(rings).flatMap(([ring, count]) =>
  Array.from({ length: count }, (_, at) => `${ring}-${at + 1}`),
);
const settings = "/configmaps/settings";

/** The number of successful applies of the settings in each cluster. */
function applies({ fleet }: World) {
  const counts = new Map<string, number>();
  const isApply = ({ method, path, dryRun, result }: RequestRecord) =>
    method === "PATCH" && !dryRun && result < 300 && path.includes(settings);
  fleet.onRequest((request) => {
    if (isApply(request)) counts.set(request.cluster, (counts.get(request.cluster) ?? 0) + 1);
  });
  return {
    take() {
      const taken = Object.fromEntries(clusters.map((name) => [name, counts.get(name) ?? 0]));
      counts.clear();
      return taken;
    },
  };
}

const isSettings = (object: { readonly metadata?: unknown }) =>
  (object.metadata as { readonly name: string }).name === "settings";

const once = Object.fromEntries(clusters.map((name) => [name, 1]));

describe.runIf(hasVersionBefore())("in the middle of a rollout", () => {
  let before: VersionBefore;
  beforeAll(async () => {
    before = await versionBefore();
  });
  afterAll(() => before.remove());

  test.each(rounds)(
    "an upgrade and the way back lose no assignment and apply none twice (round %i)",
    {
      timeout: 1_200_000,
    },
    async (round) => {
      const seed = runSeed() * 1000 + round;
      const functions = deployments(before, createRandom(seed));
      const world = { faults: quiet, code: functions.code };
      await webWorldOn(embeddedFleet)(
        { rings, files: content("blue"), rollout: { maxConcurrent: 2 }, world },
        async (it, blue) => {
          const writes = applies(it);
          await it.untilInSync("web", blue, patienceSeconds);
          expect(writes.take()).toEqual(once);
          for (const [color, version] of [
            ["green", "this"],
            ["red", "before"],
          ] as const) {
            functions.take();
            functions.deploy(version, 5);
            const commit = await it.push("app", content(color));
            await it.untilInSync("web", commit, patienceSeconds);
            expect({ seed, color, writes: writes.take() }).toEqual({ seed, color, writes: once });
            const objects = await Promise.all(clusters.map((name) => it.fleet.objects(name)));
            const data = objects.map((each) => each.find(isSettings)?.data);
            expect(data).toEqual(clusters.map(() => ({ color })));
            expect(it.monitor.most().length).toBeLessThanOrEqual(2);
            expect(it.monitor.unasked()).toEqual([]);
            const mixed = [...functions.take().values()].filter((versions) => versions.size === 2);
            expect(mixed.length).toBeGreaterThanOrEqual(2);
          }
        },
      );
    },
  );

  test("the command reads the rows that the version before has written", {
    timeout: 600_000,
  }, async () => {
    const code = (folder: string) => before.code(folder) ?? functionCode(folder);
    const setup = { rings: { canary: 1 }, files: content("blue"), world: { faults: quiet, code } };
    await webWorldOn(embeddedFleet)(setup, async (it, blue) => {
      await it.untilInSync("web", blue, patienceSeconds);
      const cli = openWorldCli(it);
      const run = async (line: string) => {
        const { code, out, err } = await cli.run(line);
        return { line, code, says: `${out}${err}` };
      };
      for (const line of [
        "get syncgroups -n shop",
        "get syncs -n shop",
        "describe syncgroup/web -n shop",
        "get clusters",
      ])
        expect(await run(line)).toMatchObject({ line, code: 0 });
      cli.close();
    });
  });
});
