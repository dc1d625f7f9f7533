import { afterEach, describe, expect, test } from "vitest";
import {
  configMap,
  deployment,
  type GroupInput,
  groupDocument,
  namespaceManifest,
  ringStages,
  ringsOf,
  sourceDocument,
} from "#test/support/e2e-documents.ts";
import { namespace, startWorld, type World, type WorldOptions } from "#test/support/e2e-world.ts";

let world: World | undefined;

afterEach(async () => {
  await world?.close();
  world = undefined;
});

/** A world with one repository, one Source `app` and one SyncGroup `web` over all clusters. */
async function webWorld(
  setup: {
    readonly rings: Readonly<Record<string, number>>;
    readonly files: Readonly<Record<string, string>>;
    readonly rollout?: GroupInput["rollout"];
    readonly apply?: GroupInput["templates"][number]["apply"];
  },
  options: WorldOptions = {},
): Promise<{ readonly made: World; readonly commit: string }> {
  world = await startWorld(options);
  await world.join(...ringsOf(setup.rings));
  const commit = await world.createRepository("app", setup.files);
  await world.apply(
    sourceDocument("app", { git: { url: world.git.url("app"), ref: { branch: "main" } }, paths: ["deploy"] }),
    groupDocument("web", {
      clusters: { all: true },
      templates: [{ name: "app", source: "app", path: "deploy", apply: { interval: "1h", ...setup.apply } }],
      rollout: { stages: ringStages(...Object.keys(setup.rings)), ...setup.rollout },
    }),
  );
  return { made: world, commit };
}

const configs = `/api/v1/namespaces/${namespace}/configmaps`;

describe("a rollout", () => {
  test("takes the first revision and then the second through the rings, within its bounds", async () => {
    const { made, commit } = await webWorld({
      rings: { canary: 1, early: 2, broad: 3 },
      files: {
        "deploy/app.yaml":
          namespaceManifest + configMap("settings", { color: "blue" }) + deployment("web", "nginx:1.27"),
      },
      rollout: { maxConcurrent: 2 },
    });
    const first = await made.untilInSync("web", commit);
    expect(first.status.clusters).toMatchObject({ selected: 6, ready: 6 });
    expect(made.monitor.most().length).toBe(2);

    made.monitor.reset();
    made.fleet.clearRequests();
    const second = await made.push("app", { "deploy/settings.yaml": configMap("more", { size: "9" }) });
    await made.untilInSync("web", second);
    expect(made.monitor.most().length).toBe(2);
    const touched = made.fleet
      .requests()
      .filter(({ method }) => method === "PATCH")
      .map(({ cluster }) => cluster);
    const firstTouch = [...new Set(touched)];
    expect(firstTouch.map((name) => name.split("-")[0])).toEqual([
      "canary",
      "early",
      "early",
      "broad",
      "broad",
      "broad",
    ]);
    for (const { name } of made.fleet.connections()) {
      expect((await made.kubectl(name, { method: "GET", path: `${configs}/more` })).object).toMatchObject({
        data: { size: "9" },
      });
    }
    expect(made.monitor.unasked()).toEqual([]);
  });
});
