/** Syncs that are ready with something other than their cluster's desired revision. */
import { describe, expect, test } from "vitest";
import { inputDigest, inputOf } from "#shared/fleet/rollout/desired-plan.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { OwnerStatus } from "#shared/fleet/rows/object-rows.ts";
import type {
  PlannedTemplate,
  RenderingRow,
  RolloutStateRow,
  StageRecord,
  StageRunRow,
} from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { apiFixture, cluster, source, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import {
  rolloutRow,
  rolloutStateRow,
  shop,
  stageRecord,
  stageRunRow,
  syncRow,
} from "#test/unit/functions/api/row-fixture.ts";

const outOfSync = "main@sha1:new";
const digest = "sha256:of-the-new-one";
const template = { name: "web", source: "app", revision: outOfSync, artifactDigest: "sha256:22" };
const apply = { prune: true, drift: "correct", interval: "10m" } as const;
/** A template that differs by cluster: the planner's record of what is rendered there. */
const planned = { ...template, apply, path: "clusters/{{ cluster.values.place }}" };
const other = { ...planned, name: "api", path: "api" };

type Rendering = Pick<RenderingRow, "state"> & Partial<RenderingRow>;

const before: StageRecord = { name: "all", current: 12, members: 3, changing: 0, failedCatchUps: 0 };

/**
 * Three clusters with rollout 12, while their stage is updating to 13: `c1` runs 13 already, `c2` and `c3` run what was
 * before.
 * @param rendering - of rollout 13 on `c2` and `c3`.
 */
async function withRollout({
  status = { conditions: [], state: "Rolling", rollout: 13 },
  templates: plannedTemplates = [other, planned],
  stageRun: change = {},
  stages,
  rolloutState = {},
  rendering = { state: "Done", digest },
}: {
  readonly status?: OwnerStatus;
  readonly templates?: readonly PlannedTemplate[];
  readonly stageRun?: Partial<StageRunRow>;
  /** The stages when no stage run is in progress. */
  readonly stages?: readonly StageRecord[];
  readonly rolloutState?: Partial<RolloutStateRow>;
  readonly rendering?: Rendering;
} = {}) {
  const api = apiFixture();
  const places = ["c1", "c2", "c3"].map((name) => {
    const document = cluster(name, { env: "prod" });
    return { ...document, spec: { ...document.spec, values: { place: name === "c1" ? "first" : "others" } } };
  });
  const templates = [
    { name: "web", source: "app" },
    { name: "api", source: "app" },
  ];
  await api.call("POST", "/v1/apply", { documents: [source("app"), ...places, syncGroup("shop", templates)] });
  const fleet = await api.table.get(keys.fleet("c2"));
  if (fleet === undefined) throw new Error("it was applied");
  const input = inputOf(planned, fleet);
  if (!("path" in input)) throw new Error(JSON.stringify(input));
  const current = syncRow("c1", "shop.web");
  const assigned: SyncRow["desired"] = { ...current.desired, renderDigest: digest, revision: outOfSync, rollout: 13 };
  const stageRun = stageRunRow({ rollout: 13, stage: "all" }, ["Succeeded", "Waiting", "Waiting"], change);
  const plan = { templates: plannedTemplates, planHash: "sha256:c1" };
  await api.table.write([
    { update: keys.object("payments", "SyncGroup", "shop"), set: { status } },
    { put: rolloutStateRow(stages ?? [{ ...before, ...stageRecord(stageRun) }], rolloutState) },
    { put: rolloutRow(13, { plan }) },
    { put: stageRun },
    {
      put: {
        ...keys.rendering(inputDigest(input)),
        type: "Rendering",
        schema: 1,
        version: 1,
        ...rendering,
      },
    },
    { put: { ...current, desired: assigned } },
    { put: syncRow("c2", "shop.web") },
    { put: syncRow("c3", "shop.web") },
  ]);
  return api;
}

type Api = Awaited<ReturnType<typeof withRollout>>;

/** By cluster: the state, and the reason why the Sync is out of sync. */
async function states(api: Api, path = "/v1/syncs") {
  const items: { spec: { cluster: string }; status: { state: string; outOfSync?: { reason: string } } }[] = [];
  let next = "";
  do {
    const { body } = await api.call("GET", `${path}${next}`);
    items.push(...body.items);
    const after = body.metadata.continue;
    next = after === undefined ? "" : `${path.includes("?") ? "&" : "?"}continue=${after}`;
  } while (next !== "");
  return items.map(({ spec, status }) => [spec.cluster, status.state, status.outOfSync?.reason]);
}

const behind = (reason: string) => [
  ["c1", "Ready", undefined],
  ["c2", "OutOfSync", reason],
  ["c3", "OutOfSync", reason],
];

describe("the state of a Sync whose worker reports Ready", () => {
  test("a Sync is OutOfSync while it waits for its turn, and shows what is desired", async () => {
    const api = await withRollout();
    for (const path of ["/v1/syncs", "/v1/namespaces/payments/syncgroups/shop/syncs"]) {
      expect(await states(api, path)).toEqual(behind("waits for its turn"));
    }
    const { body } = await api.call("GET", "/v1/namespaces/payments/syncs/shop.web?cluster=c2");
    expect(body.status).toMatchObject({
      state: "OutOfSync",
      desired: { rollout: 12 },
      outOfSync: { revision: outOfSync, rollout: 13, reason: "waits for its turn" },
    });
    // The other template of the group was never assigned there.
    expect(await states(api, "/v1/clusters/c2/syncs")).toEqual([
      ["c2", "OutOfSync", "waits for its turn"],
      ["c2", "Waiting", undefined],
    ]);
    expect((await api.call("GET", "/v1/clusters/c2")).body.status.syncs).toMatchObject({
      others: [
        { state: "OutOfSync", count: 1 },
        { state: "Waiting", count: 1 },
      ],
    });
  });

  test("the state OutOfSync finds a Sync that is behind, and the state Ready does not", async () => {
    const api = await withRollout();
    expect(await states(api, "/v1/syncs?state=OutOfSync")).toEqual(behind("waits for its turn").slice(1));
    expect(await states(api, "/v1/syncs?state=Ready")).toEqual(behind("").slice(0, 1));
  });

  test.each<[string, Parameters<typeof withRollout>[0], string]>([
    ["the rollout is halted", { stageRun: { phase: "Halted" } }, "the rollout is halted"],
    ["the rollout was not verified", { stageRun: { phase: "NothingVerified" } }, "the rollout stands still"],
    ["too many clusters are unreachable", { stageRun: { phase: "TooManyUnreachable" } }, "the rollout stands still"],
    [
      "its stage has the desired rollout, and it does not",
      { stages: [{ ...before, current: 13 }], status: { conditions: [], state: "Degraded", rollout: 13 } },
      "its stage went on without it",
    ],
    ["the desired rendering is not done yet", { rendering: { state: "Pending" } }, "waits for its turn"],
    [
      "the desired rendering fails",
      { rendering: { state: "Failed", failure: { code: "Unparsable", message: "no YAML", permanent: true } } },
      "cannot be rendered: no YAML",
    ],
    [
      "the desired rendering fails without a reason",
      { rendering: { state: "Failed" } },
      "cannot be rendered: no reason given",
    ],
  ])("a Sync is OutOfSync when %s", async (_what, how, reason) => {
    expect(await states(await withRollout(how))).toEqual(behind(reason));
  });

  test("a Sync is OutOfSync where its desired input cannot be computed", async () => {
    const nowhere = { ...planned, path: "{{ cluster.values.region }}" };
    const api = await withRollout({ templates: [nowhere] });
    expect((await states(api)).map(([, , reason]) => reason)).toEqual([
      undefined,
      expect.stringMatching(/^cannot be rendered: .*region/),
      expect.stringMatching(/^cannot be rendered: .*region/),
    ]);
  });

  test.each<[string, Parameters<typeof withRollout>[0]]>([
    ["there was no rollout", { status: { conditions: [] } }],
    ["the newest rollout is complete", { status: { conditions: [], state: "Complete", rollout: 13 } }],
    ["its group is in deletion", { status: { conditions: [], state: "Deleting", rollout: 13 } }],
    [
      "it has its stage's current rollout, and another stage has a newer one",
      { stages: [{ ...before, name: "canary", current: 13 }, before] },
    ],
    ["it has a newer rollout than its stage", { stages: [{ ...before, current: 11 }] }],
    ["no rollout has passed its stage", { stages: [{ name: "all", members: 3, changing: 0, failedCatchUps: 0 }] }],
    ["the rollout's row has expired", { stages: [{ ...before, current: 14 }] }],
    ["the rollout has no such template", { templates: [other] }],
    ["it runs the desired rendering", { rendering: { state: "Done", digest: "sha256:77ab" } }],
  ])("a Sync is Ready when %s", async (_what, how) => {
    const ready = ["c1", "c2", "c3"].map((name) => [name, "Ready", undefined]);
    expect(await states(await withRollout(how))).toEqual(ready);
  });

  test("a Sync is Ready where its cluster is no longer registered", async () => {
    const api = await withRollout();
    await api.table.write([{ delete: keys.fleet("c2") }]);
    expect(await states(api)).toEqual([
      ["c1", "Ready", undefined],
      ["c2", "Ready", undefined],
      ["c3", "OutOfSync", "waits for its turn"],
    ]);
  });

  test("a Sync waits for its turn where its cluster is to catch up", async () => {
    const api = await withRollout({ stages: [{ ...before, current: 13 }] });
    const catchUp = {
      type: "CatchUp",
      schema: 1,
      version: 1,
      cluster: "c2",
      why: "returned",
      since: "",
      reason: "",
    } as const;
    await api.table.write([{ put: { ...keys.catchUp(shop, "waiting", "c2"), ...catchUp } }]);
    expect((await states(api)).map(([, , reason]) => reason)).toEqual([
      undefined,
      "waits for its turn",
      "its stage went on without it",
    ]);
  });

  test("a Sync is OutOfSync when only the options of the same rendering differ", async () => {
    const options = { ...planned, apply: { ...apply, prune: false } };
    const api = await withRollout({ templates: [options], rendering: { state: "Done", digest: "sha256:77ab" } });
    expect(await states(api)).toEqual(behind("waits for its turn"));
  });
});

test("a Sync that is not ready has its own state, and no desired revision", async () => {
  const api = await withRollout();
  await api.table.write([{ put: syncRow("c2", "shop.web", { phase: "Failed", message: "1 object failed" }) }]);
  expect(await states(api, `/v1/namespaces/${shop.namespace}/syncs`)).toEqual([
    ["c2", "Failed", undefined],
    ["c1", "Ready", undefined],
    ["c3", "OutOfSync", "waits for its turn"],
  ]);
});
