import { expect, test } from "vitest";
import { clusterValuesSpec } from "#shared/fleet/kinds/cluster-values.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterValuesRow } from "#shared/fleet/rows/object-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import { worldOf } from "#test/support/planner-story.ts";

test("a rendering that is lost with its row is asked for with the values that others have set for its cluster", async () => {
  const made = await worldOf({ c1: "all" }, {}, [{ name: "app", source: "app", path: "{{ cluster.values.look }}" }]);
  const spec = clusterValuesSpec.parse({ clusters: { all: true }, values: { look: "red" } });
  const said = { uid: "uid-of-every", generation: 1, createdAt: "", labels: {}, annotations: {}, operations: {} };
  const every: ClusterValuesRow = {
    ...keys.clusterValues("every"),
    ...said,
    type: "ClusterValues",
    schema: rowSchema,
    version: 1,
    name: "every",
    spec,
    status: { conditions: [] },
  };
  await made.table.write([{ put: every }]);
  await made.rollOut();
  const rows = () => made.table.all().filter(({ type }) => type === "Rendering");
  const [rendering] = rows();
  if (rendering === undefined) throw new Error("nothing was rendered");
  await made.table.write([{ delete: { pk: rendering.pk, sk: rendering.sk } }]);
  await made.observe("c1", "Retrying", { reason: "RenderingLost" });
  await made.plan(undefined, ["c1"]);
  expect(rows()).toMatchObject([{ pk: rendering.pk, state: "Pending" }]);
});
