/** A folder whose many inputs render slowly leaves places for the renderings of other folders. */
import { beforeEach, expect, test } from "vitest";
import { type RenderPorts, renderInput } from "#functions/render/render-input.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { RenderMessage } from "#shared/messages.ts";
import type { Log } from "#shared/ports.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";

const silent: Log = { info: () => {}, warn: () => {}, error: () => {} };
const places = 4;
const turns = 2;

/** The queue of the renderers, which have a fixed number of places, and builds that end when the test ends them. */
class World {
  readonly table = new MemoryTable();
  readonly sender = new MemorySender();
  now = new Date("2026-03-01T10:00:00.000Z");
  /** The builds in progress by their input's name, each with the function that ends it. */
  readonly building = new Map<string, () => void>();
  readonly built: string[] = [];
  readonly queue: RenderMessage[] = [];
  readonly atWork = new Set<Promise<void>>();
  #ids = 0;

  ports(): RenderPorts {
    return {
      table: this.table,
      blobs: new MemoryBlobStore(() => this.now),
      sender: this.sender,
      builder: { build: ({ artifactDigest }) => this.#build(artifactDigest) },
      clock: { now: () => this.now },
      ids: { unique: () => `worker-${this.#ids++}` },
      log: silent,
      turns,
    };
  }

  async #build(name: string) {
    await new Promise<void>((resolve) => this.building.set(name, resolve));
    this.building.delete(name);
    this.built.push(name);
    return { digest: `sha256:${name}`, objects: 1, leftOut: [], bytes: new Uint8Array() };
  }

  /** Writes the row of a requested rendering, and sends its message. */
  async ask(path: string, name: string): Promise<void> {
    const row: RenderingRow = {
      ...keys.rendering(name),
      type: "Rendering",
      schema: rowSchema,
      version: 1,
      input: name,
      artifactDigest: name,
      path,
      engine: "e",
      state: "Pending",
      sources: [{ namespace: "shop", name: "app" }],
      requestedAt: this.now.toISOString(),
      tries: 0,
    };
    await this.table.write([{ put: row, when: "absent" }]);
    this.queue.push({ to: "render", input: name });
  }

  /** Delivers messages as SQS does, until only builds that the test must end are in progress. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 50; quiet++) {
      for (const message of this.sender.take()) if (message.to === "render") this.queue.push(message);
      while (this.atWork.size < places) {
        const message = this.queue.shift();
        if (message === undefined) break;
        const work: Promise<void> = renderInput(message, this.ports()).finally(() => this.atWork.delete(work));
        this.atWork.add(work);
        quiet = 0;
      }
      await Promise.resolve();
    }
  }

  /** Lets time pass, and then ends the builds in progress that are named. */
  async passAndEnd(seconds: number, names: readonly string[] = [...this.building.keys()]): Promise<void> {
    this.now = new Date(later(this.now, seconds));
    for (const name of names) this.building.get(name)?.();
    await this.settle();
  }
}

let world: World;
beforeEach(async () => {
  world = new World();
  // The first build shows that the folder is slow.
  await world.ask("slow", "first");
  await world.settle();
  await world.passAndEnd(25);
  expect(world.built).toEqual(["first"]);
});

const slow = ["s1", "s2", "s3", "s4", "s5"];
const under = () => [...world.building.keys()].sort();

test("a slow folder renders two of its five inputs at once, other folders render beside it, and all get their turns", async () => {
  for (const name of slow) await world.ask("slow", name);
  await world.settle();
  expect(under()).toEqual(["s1", "s2"]);
  await world.ask("quick", "q1");
  await world.ask("quick", "q2");
  await world.settle();
  expect(under()).toEqual(["q1", "q2", "s1", "s2"]);
  await world.passAndEnd(1, ["q1", "q2"]);
  await world.passAndEnd(25, ["s1"]);
  expect(under()).toEqual(["s2", "s3"]);
  await world.passAndEnd(5);
  expect(under()).toEqual(["s4", "s5"]);
  await world.passAndEnd(25);
  expect(world.built.toSorted()).toEqual(["first", "q1", "q2", ...slow]);
  for (const name of slow) expect(await world.table.get(keys.rendering(name))).toMatchObject({ state: "Done" });
});

test("a dead renderer keeps its turn no longer than its claim, and the watchdog replaces a lost call", async () => {
  for (const name of slow) await world.ask("slow", name);
  await world.settle();
  // Both renderers die, and never report again.
  world.building.clear();
  world.atWork.clear();
  world.now = new Date(later(world.now, 130));
  world.queue.push({ to: "render", input: "s3" });
  await world.settle();
  expect(under()).toEqual(["s3"]);
  world.building.get("s3")?.();
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
  // The messages that it sent are lost. The watchdog of each rendering sends one again, also for those of dead renderers.
  expect(world.sender.take().filter(({ to }) => to === "render")).not.toEqual([]);
  for (const name of slow) world.queue.push({ to: "render", input: name });
  await world.settle();
  while (world.building.size > 0) await world.passAndEnd(25);
  expect(new Set(world.built)).toEqual(new Set(["first", ...slow]));
});

test("a folder that was quick for ten minutes needs no turns any more", async () => {
  world.now = new Date(later(world.now, 601));
  for (const name of slow) await world.ask("slow", name);
  await world.settle();
  expect(under()).toEqual(["s1", "s2", "s3", "s4"]);
});

test("quick renderings write nothing about their folder", async () => {
  await world.ask("quick", "q1");
  await world.settle();
  await world.passAndEnd(4);
  expect(world.built).toContain("q1");
  expect(await world.table.get(keys.folderUse({ namespace: "shop", name: "app" }, "quick"))).toBeUndefined();
});
