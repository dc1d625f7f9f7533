/** A row that has no space for the observation still gets the outcome, and work goes on. */
import { expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { configMap } from "#test/support/cluster-fixture.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { answerJson } from "#test/support/hostile-api.ts";
import { startHostileWorker } from "#test/support/hostile-worker.ts";

const worker = forEachTest(startHostileWorker);

test("the outcome of a Sync whose row is full is written without its details, and work goes on", async () => {
  await worker.world.assign("web", [configMap("default/a"), configMap("default/b")]);
  const row = await worker.world.sync("web");
  if (row === undefined) throw new Error("there is no Sync");
  // The half of the row that another writer owns is as large as it can be.
  const full = { ...row, filler: "x".repeat(407_200) } as SyncRow;
  await worker.world.table.write([{ put: full }]);
  const message = "not allowed to do this. ".repeat(40);
  worker.api.attack(
    (request, response) =>
      request.method === "PATCH" && answerJson(response, JSON.stringify({ reason: "Forbidden", message }), 403),
  );
  await worker.world.work();
  expect(await worker.observed()).toMatchObject({
    phase: "Failed",
    reason: "ApplyFailed",
    message: expect.stringMatching(/only the outcome is recorded: row .* filler \(398 KB\).*make its content smaller/),
    problems: [],
  });
  const lease = await worker.world.lease();
  expect(lease?.owner).toBeUndefined();

  worker.api.attack(undefined);
  const failed = await worker.world.sync("web");
  await worker.world.table.write([{ put: { ...failed, desired: { ...failed?.desired, attempt: 2 } } as SyncRow }]);
  await worker.world.work();
  expect((await worker.world.sync("web"))?.observed).toMatchObject({ phase: "Ready", attempt: 2 });
  expect(worker.members()).toEqual(["a", "b"]);
  expect(await worker.world.table.get(keys.sync("c1", "tests", "web"))).toHaveProperty("filler");
});
