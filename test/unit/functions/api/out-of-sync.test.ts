/** Syncs that are ready with something else than their cluster wants: what its stage moves to, or is on. */
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
/** One that differs by cluster: the planner's word for what is rendered there. */
const planned = { ...template, apply, path: "clusters/{{ cluster.values.place }}" };
const other = { ...planned, name: "api", path: "api" };

type Rendering = Pick<RenderingRow, "state"> & Partial<RenderingRow>;

const before: StageRecord = { name: "all", current: 12, members: 3, changing: 0, failedCatchUps: 0 };

/**
 * Three clusters with content 12, while 13 goes through their stage: `c1` runs what that wants, `c2` and `c3` what was
 * before.
 * @param rendering - of what content 13 wants on `c2` and `c3`.
 */
async function withRollout({
  status = { conditions: [], state: "Rolling", rollout: 13 },
  templates: wantedTemplates = [other, planned],
  stageRun: change = {},
  stages,
  rolloutState = {},
  rendering = { state: "Done", digest },
}: {
  readonly status?: OwnerStatus;
  readonly templates?: readonly PlannedTemplate[];
  readonly stageRun?: Partial<StageRunRow>;
  /** As they are where no leg goes through them. */
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
  const plan = { templates: wantedTemplates, planHash: "sha256:c1" };
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

/** By cluster: the state, and why it is behind. */
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

describe("a Sync that is ready", () => {
  test("is out of sync while its turn has not come, and says what is wanted", async () => {
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

  test("is found by that state, and not by the one of those that are not behind", async () => {
    const api = await withRollout();
    expect(await states(api, "/v1/syncs?state=OutOfSync")).toEqual(behind("waits for its turn").slice(1));
    expect(await states(api, "/v1/syncs?state=Ready")).toEqual(behind("").slice(0, 1));
  });

  test.each<[string, Parameters<typeof withRollout>[0], string]>([
    ["the rollout is halted", { stageRun: { phase: "Halted" } }, "the rollout is halted"],
    ["nothing of it was verified", { stageRun: { phase: "NothingVerified" } }, "the rollout stands still"],
    ["too many do not answer", { stageRun: { phase: "TooManyUnreachable" } }, "the rollout stands still"],
    [
      "its stage is on what is wanted",
      { stages: [{ ...before, current: 13 }], status: { conditions: [], state: "Degraded", rollout: 13 } },
      "its stage went on without it",
    ],
    ["what is wanted is not rendered yet", { rendering: { state: "Pending" } }, "waits for its turn"],
    [
      "what is wanted cannot be rendered",
      { rendering: { state: "Failed", failure: { code: "Unparsable", message: "no YAML", permanent: true } } },
      "cannot be rendered: no YAML",
    ],
    [
      "what is wanted cannot be rendered, whyever",
      { rendering: { state: "Failed" } },
      "cannot be rendered: no reason given",
    ],
  ])("is out of sync: %s", async (_what, how, reason) => {
    expect(await states(await withRollout(how))).toEqual(behind(reason));
  });

  test("is out of sync where nobody can say what is wanted", async () => {
    const nowhere = { ...planned, path: "{{ cluster.values.region }}" };
    const api = await withRollout({ templates: [nowhere] });
    expect((await states(api)).map(([, , reason]) => reason)).toEqual([
      undefined,
      expect.stringMatching(/^cannot be rendered: .*region/),
      expect.stringMatching(/^cannot be rendered: .*region/),
    ]);
  });

  test.each<[string, Parameters<typeof withRollout>[0]]>([
    ["nothing was rolled out", { status: { conditions: [] } }],
    ["the newest rollout is complete", { status: { conditions: [], state: "Complete", rollout: 13 } }],
    ["its subject is being deleted", { status: { conditions: [], state: "Deleting", rollout: 13 } }],
    [
      "its stage is on what it has, and another one on what is newer",
      { stages: [{ ...before, name: "canary", current: 13 }, before] },
    ],
    ["it has more than its stage is on", { stages: [{ ...before, current: 11 }] }],
    ["nothing has passed its stage", { stages: [{ name: "all", members: 3, changing: 0, failedCatchUps: 0 }] }],
    ["the content is not there any more", { stages: [{ ...before, current: 14 }] }],
    ["the content has no such template", { templates: [other] }],
    ["it runs what is wanted", { rendering: { state: "Done", digest: "sha256:77ab" } }],
  ])("is ready where %s", async (_what, how) => {
    const ready = ["c1", "c2", "c3"].map((name) => [name, "Ready", undefined]);
    expect(await states(await withRollout(how))).toEqual(ready);
  });

  test("is ready where its cluster is not registered any more", async () => {
    const api = await withRollout();
    await api.table.write([{ delete: keys.fleet("c2") }]);
    expect(await states(api)).toEqual([
      ["c1", "Ready", undefined],
      ["c2", "Ready", undefined],
      ["c3", "OutOfSync", "waits for its turn"],
    ]);
  });

  test("waits for its turn where it is to be brought to what its stage is on", async () => {
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

  test("is out of sync with other options of the same rendering", async () => {
    const options = { ...planned, apply: { ...apply, prune: false } };
    const api = await withRollout({ templates: [options], rendering: { state: "Done", digest: "sha256:77ab" } });
    expect(await states(api)).toEqual(behind("waits for its turn"));
  });
});

test("a Sync that is not ready is what it is, and nothing is said of what comes next", async () => {
  const api = await withRollout();
  await api.table.write([{ put: syncRow("c2", "shop.web", { phase: "Failed", message: "1 object failed" }) }]);
  expect(await states(api, `/v1/namespaces/${shop.namespace}/syncs`)).toEqual([
    ["c2", "Failed", undefined],
    ["c1", "Ready", undefined],
    ["c3", "OutOfSync", "waits for its turn"],
  ]);
});
