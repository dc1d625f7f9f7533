/** Deleted files of the bucket come back by themselves: artifacts are fetched again, renderings are made again. */
import { DeleteObjectCommand, ListObjectsV2Command } from "@aws-sdk/client-s3";
import { describe, expect, test } from "vitest";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import type { World, WorldOptions } from "#test/support/e2e-world.ts";
import { proxiedEmbedded } from "#test/support/fleet-targets.ts";
import { webGroup, webWorldOn } from "#test/support/web-world.ts";

const files = (color: string) => ({
  "deploy/namespace.yaml": namespaceManifest,
  "deploy/a.yaml": configMap("a", { color }),
  "extra/b.yaml": configMap("b", { color }),
});

/** Deletes every blob of these folders. @returns the keys. */
async function lose({ machine }: World, ...folders: readonly string[]): Promise<readonly string[]> {
  const lost: string[] = [];
  const Bucket = machine.environment.bucket;
  for (const folder of folders) {
    const { Contents = [] } = await machine.aws.s3.send(new ListObjectsV2Command({ Bucket, Prefix: `${folder}/` }));
    for (const { Key = "" } of Contents) {
      await machine.aws.s3.send(new DeleteObjectCommand({ Bucket, Key }));
      lost.push(Key);
    }
  }
  expect(lost.length).toBeGreaterThan(0);
  return lost;
}

async function stored({ machine }: World, folder: string): Promise<readonly string[]> {
  const list = new ListObjectsV2Command({ Bucket: machine.environment.bucket, Prefix: `${folder}/` });
  const { Contents = [] } = await machine.aws.s3.send(list);
  return Contents.map(({ Key = "" }) => Key);
}

/** A sandbox keeps an artifact that it has read, so each build gets a new sandbox. */
const world: WorldOptions = {
  sandboxes: (name, wire) => (name === "build" ? (event, context) => wire()(event, context) : wire()),
};
const setup = { rings: { all: 2 }, files: files("blue"), source: { paths: ["deploy", "extra"] }, world };

describe.each(proxiedEmbedded)("on $name", (fleet) => {
  const withWebWorld = webWorldOn(fleet);

  test("a missing artifact is fetched again when a new template needs it", () =>
    withWebWorld(setup, async (world, commit) => {
      await world.untilInSync("web", commit);
      const lost = await lose(world, "artifacts");
      const extra = { name: "extra", source: "app", path: "extra" };
      const group = webGroup(setup);
      await world.apply({ ...group, spec: { ...group.spec, templates: [...group.spec.templates, extra] } });
      await world.waitFor("both templates are in sync", async () => {
        const { status } = await world.group("web");
        const syncs = await Promise.all(["all-1", "all-2"].map((name) => world.sync(name, "web.extra")));
        return status.state === "Complete" && syncs.every((sync) => sync?.status.state === "Ready");
      });
      expect(await stored(world, "artifacts")).toEqual(lost);
    }));

  test("a reconcile of the Source fetches a missing artifact again", () =>
    withWebWorld(setup, async (world, commit) => {
      await world.untilInSync("web", commit);
      const lost = await lose(world, "artifacts");
      await world.session.call("POST", "/v1/namespaces/shop/sources/app/reconcile", {});
      await world.waitFor("it is there again", async () => (await stored(world, "artifacts")).length === lost.length);
      expect(await stored(world, "artifacts")).toEqual(lost);
    }));

  test.each([
    { what: "rendering", folders: ["renderings"] },
    { what: "rendering and artifact", folders: ["renderings", "artifacts"] },
  ])("a revert to a revision whose $what is missing is still rolled out", ({ folders }) =>
    withWebWorld(setup, async (world, first) => {
      await world.untilInSync("web", first);
      const second = await world.push("app", files("green"));
      await world.untilInSync("web", second);
      await lose(world, ...folders);
      const third = await world.push("app", files("blue"));
      await world.untilInSync("web", third);
      for (const cluster of ["all-1", "all-2"]) {
        const path = "/api/v1/namespaces/shop/configmaps/a";
        const { object } = await world.kubectl(cluster, { method: "GET", path });
        expect(object.data).toEqual({ color: "blue" });
      }
    }),
  );
});
