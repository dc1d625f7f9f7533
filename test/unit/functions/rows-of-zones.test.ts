/**
 * The role of a zone may write the rows of its own clusters, checks and zone. The clusters of other zones go on when a stolen role
 * writes other values there, and people can read everything else.
 */

import { beforeAll, describe, expect, test } from "vitest";
import { reportChanges } from "#functions/report/report-changes.ts";
import { claimDue } from "#functions/tick/claim-due.ts";
import { zonesSurvey } from "#functions/tick/survey-zones.ts";
import { takeSurvey } from "#functions/tick/take-survey.ts";
import { parseZoneNetworks } from "#shared/fleet/api/zone-object.ts";
import { dueAttributes } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { keyText, type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import { begin, copyOf, lease, names, register, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld, silentLog, silentMetrics } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const home = names(2, "h");
const stolen = new Set(["CL#s000", "CHECK#s000", "ZONE#spoke"]);

/** h000 and h001 are in `home`, s000 is in `spoke`, whose role is stolen. All are assigned a rollout. */
async function fleet(): Promise<PlannerWorld> {
  const all = { maxConcurrent: "100%", maxUnreachable: "100%", maxFailures: "100%", progressDeadline: "10m" } as const;
  const made = await worldOf(home, all);
  made.zones = new Set(["spoke"]);
  await made.addCluster("s000", "all", { zone: "spoke" });
  for (const name of [...home, "s000"]) await register(made, name);
  await made.table.write([{ put: { ...keys.owner(owner), type: "Directory", schema: rowSchema, version: 1 } as Row }]);
  await begin(made);
  for (const zone of ["home", "spoke"]) await made.pulse(zone);
  await lease(made, "s000", { fence: 2, seconds: 30 });
  await made.observe("s000", "Failed", { problems: [{ object: "ConfigMap shop/a", reason: "Denied", message: "no" }] });
  const at = made.now.toISOString();
  const condition = { type: "Reachable", status: "False", reason: "Unreachable", message: "", since: at };
  const row = await made.table.get(keys.cluster("s000"));
  const due = dueAttributes(keys.cluster("s000"), at);
  const check = { schema: rowSchema, version: 1, asked: { id: "q", at, by: "ana", needs: {} } };
  const links = [{ link: "cluster", state: "ok" }];
  await made.table.write([
    { put: { ...row, ...due, status: { lastSeenAt: at, conditions: [condition] } } as Row },
    { put: { ...check, ...keys.check("s000"), type: "Check", answer: { id: "q", at, links } } as Row },
  ]);
  return made;
}

type Path = readonly (string | number)[];

/** Every field, and every field in a field. */
function pathsIn(value: unknown): readonly Path[] {
  if (typeof value !== "object" || value === null) return [];
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return entries.flatMap(([name, within]) => [[name], ...pathsIn(within).map((path) => [name, ...path])]);
}

/** The value with another one at a path; `undefined` removes the field. */
function withAt(value: unknown, [name = "", ...rest]: Path, next: unknown): unknown {
  if (Array.isArray(value)) {
    const changed = value.map((one, index) =>
      index !== name ? one : rest.length > 0 ? withAt(one, rest, next) : next,
    );
    return changed.filter((one) => one !== undefined);
  }
  const fields = value as Readonly<Record<string, unknown>>;
  return { ...fields, [name]: rest.length > 0 ? withAt(fields[name], rest, next) : next };
}

/** DynamoDB takes no other values for the keys of rows and of indexes than texts. */
const ofKeys: ReadonlySet<unknown> = new Set(["pk", "sk", "dueShard", "dueKey", "statePk", "stateSk"]);
const values = [undefined, null, 7, "x", [], {}, [null]];
const long = "x".repeat(380_000);

let origin: PlannerWorld;
let rows: readonly (readonly [string, Row])[];
beforeAll(async () => {
  origin = await fleet();
  const odd = origin.table.all().filter(({ pk }) => stolen.has(pk));
  rows = odd.flatMap((row) =>
    pathsIn(row)
      .filter(([name]) => !ofKeys.has(name))
      .flatMap((path) =>
        [...values, ...(path.at(-1) === "message" || path.at(-1) === "reason" ? [long] : [])].map((value) => {
          const what = `${keyText(row)} ${path.join(".")} = ${JSON.stringify(value)?.slice(0, 20)}`;
          return [what, withAt(row, path, value) as Row] as const;
        }),
      ),
  );
});

/** Everything that goes wrong, each with the value that was written. */
async function problems(problemsOf: (made: PlannerWorld) => Promise<readonly string[]>): Promise<readonly string[]> {
  expect(rows.length).toBeGreaterThan(700);
  expect(await problemsOf(await copyOf(origin))).toEqual([]);
  const found: string[] = [];
  for (const [what, row] of rows) {
    const made = await copyOf(origin);
    await made.table.write([{ put: row }]);
    const seen = await problemsOf(made).catch((error: Error) => [error.message]);
    found.push(...seen.map((problem) => `${what}: ${problem}`));
  }
  return found;
}

describe("a stolen role of a zone writes any value into any field of its rows", () => {
  test("the planner ends the attempts of the clusters of other zones", async () => {
    const found = await problems(async (made) => {
      made.zones = origin.zones;
      for (const cluster of home) await made.finish(cluster);
      await made.plan();
      made.advanceClock(700);
      await made.pulse("home");
      await made.plan();
      return made.slots().flatMap(({ cluster }) => (home.includes(cluster) ? [`${cluster} keeps its slot`] : []));
    });
    expect(found).toEqual([]);
  });

  test("the tick and the reports fail in no case", async () => {
    const found = await problems(async ({ table, sender, clock }) => {
      const ports = { table, sender, clock, log: silentLog, metrics: silentMetrics, events: table };
      const about = { kind: "Sync", namespace: "shop", name: "web.app" } as const;
      await reportChanges(
        ["s000", "h000"].map((cluster) => ({ to: "report", about: { ...about, cluster } })),
        ports,
      );
      await claimDue(ports);
      await takeSurvey(ports, await zonesSurvey({ ...ports, zones: new Set(["spoke"]) })());
      return [];
    });
    expect(found).toEqual([]);
  });

  test("the API answers", async () => {
    const group = "/v1/namespaces/shop/syncgroups/web";
    const pages = [`${group}/rollout`, `${group}/syncs`, `${group}/rollouts/1/targets`];
    const found = await problems(async ({ table, blobs, now }) => {
      const api = apiFixture(table, table, blobs, { zoneNetworks: parseZoneNetworks("spoke=subnets") });
      api.setNow(now.toISOString());
      const seen: string[] = [];
      for (const path of ["/v1/clusters", "/v1/fleet", "/v1/zones", "/v1/clusters/s000/syncs", ...pages]) {
        const { status } = await api.call("GET", path);
        if (status !== 200) seen.push(`${path} answers ${status}`);
      }
      return seen;
    });
    expect(found).toEqual([]);
  });
});
