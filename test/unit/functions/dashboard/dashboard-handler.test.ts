/** The dashboard's widget over rows that a planner made: its pages, and what hostile texts can do to them. */
import { describe, expect, test } from "vitest";
import { dashboardHandler } from "#functions/dashboard/dashboard-handler.ts";
import type { StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Table } from "#shared/ports.ts";
import { tableIn, textOf } from "#test/support/html-tables.ts";
import { owner, PlannerWorld, silentLog } from "#test/support/planner-world.ts";

const arn = "arn:aws:lambda:eu-west-1:111122223333:function:starling-Dashboard";
const invocation = { invokedFunctionArn: arn, awsRequestId: "7f3a" };
const group = `/syncgroups/${owner.namespace}/${owner.name}`;

function widget(world: PlannerWorld, table: Table = world.table) {
  const faults: unknown[] = [];
  const log = { ...silentLog, error: (message: string, fields?: object) => void faults.push({ message, ...fields }) };
  const { blobs } = world;
  const handler = dashboardHandler({ table, blobs, clock: { now: () => world.now }, log, installation: "test" });
  return { faults, see: (event: unknown) => handler(event, invocation) };
}

/** A group of two stages, with its entry in the directory as the API writes it. */
async function fleetOf(size: number): Promise<PlannerWorld> {
  const world = new PlannerWorld();
  for (let at = 0; at < size; at++) await world.addCluster(`c-${at}`, at < 2 ? "canary" : "broad");
  await world.setSource("red");
  await world.setGroup({
    stages: [
      { name: "canary", clusters: { selector: { matchLabels: { ring: "canary" }, matchExpressions: [] } } },
      { name: "broad" },
    ] as never,
    maxConcurrent: "50%",
    // Neither one failure nor one unreachable cluster halts it.
    maxFailures: "20%",
    maxUnreachable: "20%",
  });
  await world.table.write([{ put: { ...entryOf(), type: "OwnerEntry" } as never }]);
  return world;
}

function entryOf() {
  const { namespace, kind, name } = owner;
  return { pk: "OWNERS", sk: `${namespace}#${kind}#${name}`, schema: 1, version: 1 };
}

/** The numbers of a stage, counted in the rows of its targets and slots. */
function recount(world: PlannerWorld, stageRun: StageRunRow) {
  const targets = world
    .targets(stageRun.rollout)
    .filter((row) => row.stageRun.stage === stageRun.stage && row.stageRun.snapshot === stageRun.snapshot);
  const of = (...states: string[]) => targets.filter(({ state }) => states.includes(state)).length;
  const changing = world
    .slots()
    .filter(
      (slot) =>
        slot.stageRun?.stage === stageRun.stage &&
        slot.stageRun.rollout === stageRun.rollout &&
        slot.releasing === undefined,
    );
  return {
    done: `${of("Succeeded", "Unchanged")}/${stageRun.size}`,
    failed: of("Failed"),
    unreachable: of("Unreachable"),
    changing: changing.length,
  };
}

describe("the counts on a group's page", () => {
  test("the counts are those of the rows of single clusters, in every state of a rollout", async () => {
    const world = await fleetOf(12);
    const { see } = widget(world);
    const states = new Set<string>();
    const check = async () => {
      await world.plan();
      const html = await see({ path: group });
      const stages = tableIn(html, "Stages in their order");
      for (const [at, stage] of world.rolloutState().stages.entries()) {
        const [name, members, , , , done, failed, unreachable, changing, state] = stages[at] ?? [];
        expect(name).toBe(`${at + 1} ${stage.name}`);
        expect(members).toBe(String(stage.name === "canary" ? 2 : 10));
        states.add(state ?? "");
        const ref = stage.updatingTo ?? stage.passed;
        if (ref === undefined) continue;
        const stageRun = world
          .stageRuns()
          .find((one) => one.rollout === ref.rollout && one.stage === stage.name && one.snapshot === ref.snapshot);
        if (stageRun === undefined) throw new Error("the stage run of a stage has no row");
        const shown = { done, failed: Number(failed?.split("/")[0]), unreachable: Number(unreachable?.split("/")[0]) };
        expect({ ...shown, changing: Number(changing) }).toEqual(recount(world, stageRun));
      }
      // The bar on the fleet's page counts all selected clusters.
      const [[, , , , , ready = ""] = []] = tableIn(await see({ path: "/" }), "SyncGroups and Syncs, the worst first");
      if (world.rolloutState().stages.length > 0) expect(ready.split("/")[1]).toBe("12");
    };
    await check();
    await world.renderAll();
    await check();
    for (const [cluster, phase] of [
      ["c-0", "Ready"],
      ["c-1", "Ready"],
    ] as const) {
      if (world.slots().some((slot) => slot.cluster === cluster)) await world.finish(cluster, phase);
      await check();
    }
    for (let round = 0; round < 12 && !world.isThrough(); round++) {
      const [slot] = world.slots();
      if (slot === undefined) break;
      const phase = slot.cluster === "c-3" ? "Failed" : slot.cluster === "c-4" ? "Unreachable" : "Ready";
      await world.finish(slot.cluster, phase);
      await check();
      world.advanceClock(30);
    }
    await world.setSource("blue");
    await check();
    await world.renderAll();
    await check();
    for (const { cluster } of world.slots()) await world.finish(cluster, "Failed");
    await check();
    expect([...states].sort()).toEqual(expect.arrayContaining(["halted", "passed", "updating", "waiting"]));
  });
});

describe("texts that other people wrote", () => {
  const hostile = [
    `<script>alert(1)</script>`,
    `"><img src=x onerror=alert(1)>`,
    `</button></cwdb-action><cwdb-action action="call" endpoint="arn:evil">{}</cwdb-action>`,
    `</style></div>`,
    `\u202egnp.exe\u0000\u001b[31m`,
    "x".repeat(10_000),
  ];

  test.each(hostile)("the widget shows %j as a text, and a click sends it as a text", async (text) => {
    const world = await fleetOf(3);
    await world.setSource(text);
    await world.plan();
    await world.renderAll();
    await world.plan();
    await world.observe("c-0", "Failed", { reason: text });
    await world.plan();
    const { see } = widget(world);
    const pages = [group, "/", "/versions", `${group}/clusters`, "/timeline", "/events", "/sources"];
    for (const path of pages) {
      const html = await see({ path, query: { state: "Failed", stage: "canary", labelSelector: text } });
      expect(html.length).toBeLessThan(200_000);
      const known =
        /<\/?(?:div|table|caption|thead|tbody|tr|th|td|span|dl|dt|dd|ul|li|a|b|p|h1|h2|svg|title|rect|time|code|section|style|button|small|label|input|cwdb-action)(?: [a-z-]+="[^"<>]*")*>/gi;
      const style = html.slice(0, html.indexOf("</style>"));
      const rest = html.slice(style.length).replaceAll(known, "");
      expect(rest).not.toMatch(/[<>]/);
      for (const [, endpoint] of html.matchAll(/ endpoint="([^"]*)"/g)) expect(endpoint).toBe(arn);
      for (const [, json = ""] of html.matchAll(/<cwdb-action [^>]*>(.*?)<\/cwdb-action>/gs))
        expect(JSON.parse(json).path).toMatch(/^\//);
      for (const obeyed of ["\u0000", "\u001b", "\u202e"]) expect(html).not.toContain(obeyed);
    }
  });

  test.each([
    [undefined],
    [null],
    ["text"],
    [{ path: 7 }],
    [{ path: "no slash" }],
    [{ path: "/", query: "state" }],
    [{ path: "/", query: { stage: "x".repeat(5000) } }],
    [{ path: "/clusters/%E0%A4%A" }],
    [
      {
        path: "/",
        widgetContext: { theme: "url(evil)", timeRange: { start: 1e300, end: "never" }, forms: { all: { a: {} } } },
      },
    ],
  ])("the widget answers %j with HTML", async (event) => {
    const { see } = widget(await fleetOf(1));
    expect(await see(event)).toContain('<div class="starling');
  });
});

describe("the widget in CloudWatch", () => {
  test("the widget describes itself when the console asks", async () => {
    expect(await widget(new PlannerWorld()).see({ describe: true })).toMatch(/^## Starling\n/);
  });

  test("the widget follows the console's theme, and has no script, no frame and no address of another site", async () => {
    const world = await fleetOf(3);
    await world.plan();
    const { see } = widget(world);
    const at = (theme: string) => see({ path: group, widgetContext: { theme } });
    const [light, dark] = [await at("light"), await at("dark")];
    expect(light).toContain("color-scheme:light");
    expect(dark).toContain("color-scheme:dark");
    expect(light).not.toMatch(/<script|<iframe|<use|<form|href=|src=|url\(|@import|:root|body\./);
    expect(light).toContain("cwdb-no-default-styles");
  });

  test("the widget's links lead from the fleet to a Sync by the events that the console sends back", async () => {
    const world = await fleetOf(3);
    await world.plan();
    await world.renderAll();
    await world.plan();
    await world.observe("c-0", "Failed", { reason: "ImagePullBackOff" });
    await world.plan();
    const { see } = widget(world);
    let html = await see({});
    const follow = async (text: string) => {
      const found = [
        ...html.matchAll(/<button type="button" class="to">(.*?)<\/button><cwdb-action [^>]*>(.*?)<\/cwdb-action>/gs),
      ];
      const link = found.find(([, label = ""]) => textOf(label) === text);
      if (link === undefined) throw new Error(`no link ${text} in ${textOf(html)}`);
      html = await see({ ...JSON.parse(link[2] ?? ""), widgetContext: { theme: "dark", params: { path: "/" } } });
    };
    await follow("shop/web");
    await follow("0/2");
    await follow("web.app");
    expect(textOf(html)).toContain("shop/web.app on c-0");
    expect(textOf(html)).toContain("ImagePullBackOff");
  });

  test("the widget uses what a person typed, and the time range of the graphs", async () => {
    const world = await fleetOf(3);
    await world.plan();
    const { see } = widget(world);
    const [start, end] = [Date.parse("2026-11-20T00:00:00Z"), Date.parse("2026-11-20T12:00:00Z")];
    const context = (more: object) => ({ widgetContext: { theme: "light", ...more } });
    const early = await see({ path: "/timeline", ...context({ timeRange: { start, end } }) });
    expect(textOf(early)).toContain("There were no rollouts in this time");
    const zoom = { start, end: Date.parse("2026-11-21T12:00:00Z") };
    const later = await see({ path: "/timeline", ...context({ timeRange: { start, end, zoom } }) });
    expect(tableIn(later, "Rollouts in this time, the newest first")).toHaveLength(1);
    const typed = await see({ path: "/clusters", ...context({ forms: { all: { labelSelector: "ring in (" } } }) });
    expect(textOf(typed)).toContain("labelSelector");
  });
});

test("the widget shows and logs a failure, and never writes to the table", async () => {
  const world = await fleetOf(3);
  await world.plan();
  const written: unknown[] = [];
  const watched = new Proxy(world.table, {
    get: (table, name, self) =>
      name === "write" ? (changes: unknown) => void written.push(changes) : Reflect.get(table, name, self).bind(table),
  });
  for (const path of ["/", "/versions", "/clusters", "/sources", "/timeline", "/events", group, `${group}/clusters`])
    expect(await widget(world, watched).see({ path })).not.toContain("could not be rendered");
  expect(written).toEqual([]);
  const broken = new Proxy(world.table, {
    get: () => () => Promise.reject(new Error("ProvisionedThroughputExceeded")),
  });
  const { see, faults } = widget(world, broken);
  expect(textOf(await see({ path: "/" }))).toContain("ProvisionedThroughputExceeded");
  expect(faults).toEqual([expect.objectContaining({ awsRequestId: "7f3a", fault: expect.stringContaining("/v1/") })]);
});
