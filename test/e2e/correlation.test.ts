import { expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import { embeddedFleet } from "#test/support/fleet.ts";
import { webWorldOn } from "#test/support/web-world.ts";

type Line = Readonly<Record<string, unknown>>;

const withWebWorld = webWorldOn(embeddedFleet);
const files = (color: string) => ({
  "deploy/settings.yaml": namespaceManifest + configMap("settings", { color }),
});

test("the log lines of every function share one id from a push to each cluster, stage by stage", async () => {
  const lines: Line[] = [];
  const onLine = (from: string, line: string) => void lines.push({ from, ...(JSON.parse(line) as Line) });
  const setup = { rings: { canary: 1, broad: 2 }, files: files("blue"), world: { faults: quiet, onLine } };
  await withWebWorld(setup, async (world, first) => {
    await world.untilInSync("web", first);
    const before = lines.length;
    const commit = await world.push("app", files("green"));
    await world.untilInSync("web", commit);

    const written = lines.slice(before).filter((line) => line.message !== undefined);
    const pushes = written.filter(({ message }) => message === "push received");
    expect(pushes).toHaveLength(1);
    const id = pushes[0]?.correlationId;
    expect(id).toMatch(/^push-\d{8}T\d{6}Z-[0-9a-f]{8}$/);
    const itsOwn = written.filter(({ correlationId }) => correlationId === id);
    expect([...new Set(itsOwn.map(({ from }) => from))].sort()).toEqual([
      "apply",
      "render",
      "report",
      "resolve",
      "rollout",
      "webhook",
    ]);
    const ready = itsOwn.filter(({ from, phase }) => from === "apply" && phase === "Ready");
    expect(ready.map(({ cluster }) => cluster).sort()).toEqual(["broad-1", "broad-2", "canary-1"]);
    for (const line of ready) {
      expect(line).toMatchObject({ kind: "Sync", namespace: "shop", name: "web.app", owner: "SyncGroup/web" });
      expect(line).toMatchObject({ rollout: "web-2", revision: expect.stringContaining(commit) });
    }
    expect(written.filter(({ correlationId }) => correlationId === undefined)).toEqual([]);
  });
});
