/** The groups that a change of the fleet wakes, and the changes after which the planner computes members anew. */
import { expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { countedTable } from "#test/support/counted-table.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { names } from "#test/support/planner-story.ts";
import {
  type ApiFixture,
  apiFixture,
  cluster,
  clusterValues,
  sync,
  syncGroup,
} from "#test/unit/functions/api/api-fixture.ts";

const templates = [{ name: "web", source: "app" }];
const inEnv = (env: string) => ({ selector: { matchLabels: { env } } });

function group(name: string, clusters: unknown) {
  const document = syncGroup(name, templates);
  return { ...document, spec: { ...document.spec, clusters } };
}

function woken(api: ApiFixture): readonly string[] {
  return api.takeMessages().map((message) => (message.to === "rollout" ? message.owner.name : message.to));
}

function versions(api: ApiFixture): readonly number[] {
  return api.table
    .all()
    .filter(({ type }) => type === "FleetVersion" || type === "Fleet")
    .map(({ version }) => version);
}

const before = [
  group("dev", inEnv("dev")),
  group("prod", inEnv("prod")),
  group("named", { names: ["c1"] }),
  group("others", { names: ["c2"] }),
  group("everywhere", { all: true }),
  sync("extra", { cluster: "c1", source: "app" }),
];

test("a Cluster that changes wakes the groups and Syncs that selected it before or select it now", async () => {
  const api = apiFixture();
  await api.call("POST", "/v1/apply", { documents: before });
  api.takeMessages();
  await api.call("POST", "/v1/apply", { documents: [cluster("c1", { env: "dev" })] });
  expect(woken(api)).toEqual(["extra", "dev", "everywhere", "named"]);
  await api.call("POST", "/v1/apply", { documents: [cluster("c1", { env: "prod" })] });
  expect(woken(api)).toEqual(["extra", "dev", "everywhere", "named", "prod"]);
  await api.call("POST", "/v1/apply", { documents: [cluster("c3", { env: "test" })] });
  expect(woken(api)).toEqual(["everywhere"]);
});

test("every change of a Cluster wakes a group in deletion, because it may have objects on any cluster", async () => {
  const api = apiFixture();
  await api.call("POST", "/v1/apply", { documents: [group("others", { names: ["c2"] })] });
  await api.call("DELETE", "/v1/namespaces/payments/syncgroups/others?confirm=true");
  api.takeMessages();
  await api.call("POST", "/v1/apply", { documents: [cluster("c1", { env: "dev" })] });
  expect(woken(api)).toEqual(["others"]);
});

test("ClusterValues wake the groups and Syncs of the clusters that they select or selected", async () => {
  const api = apiFixture();
  const applied = async (...documents: readonly unknown[]) => {
    await api.call("POST", "/v1/apply", { documents });
    return woken(api);
  };
  const fleet = [cluster("c1", { env: "dev" }), cluster("c2", { env: "prod" }), cluster("c3", { env: "test" })];
  await applied(...fleet, ...before);
  const [ofC1, ofC2] = [
    ["extra", "dev", "everywhere", "named"],
    ["everywhere", "others", "prod"],
  ];
  const of = (clusters: object, values: object = { color: "red" }) => clusterValues("look", clusters, values);
  expect(await applied(of(inEnv("dev")))).toEqual(ofC1);
  // The same ClusterValues again, and then with another label of their own.
  expect(await applied(of(inEnv("dev")))).toEqual([]);
  const labelled = { ...of(inEnv("dev")), metadata: { name: "look", labels: { team: "web" } } };
  expect(await applied(labelled)).toEqual([]);
  expect(await applied(of(inEnv("dev"), { color: "blue" }))).toEqual(ofC1);
  // The groups whose clusters had the values before are woken, too.
  expect(await applied(of(inEnv("prod"), { color: "blue" }))).toEqual([
    "extra",
    "dev",
    "everywhere",
    "named",
    "others",
    "prod",
  ]);
  expect(await applied(of(inEnv("test"), { color: "blue" }))).toEqual(ofC2);
  expect(await applied(of({ names: ["c9"] }, { color: "blue" }))).toEqual(["everywhere"]);
  expect(await applied(of({ names: ["c9"] }, { color: "green" }))).toEqual([]);
  expect(await applied(of({ names: ["c2"] }))).toEqual(ofC2);
  await api.call("DELETE", "/v1/clustervalues/look?confirm=true");
  expect(woken(api)).toEqual(ofC2);
});

test("a change of a Cluster that the planner does not use leaves the fleet's version as it is", async () => {
  const api = apiFixture();
  await api.call("POST", "/v1/apply", { documents: [...before, cluster("c1", { env: "dev" })] });
  api.takeMessages();
  const first = versions(api);
  const created = (await api.table.get(keys.cluster("c1")))?.version ?? 0;
  const one = cluster("c1", { env: "dev" });
  const annotated = { ...one, metadata: { ...one.metadata, annotations: { note: "x" } } };
  await api.call("POST", "/v1/apply", { documents: [annotated] });
  const moved = {
    ...annotated.spec,
    endpoint: { ...annotated.spec.endpoint, server: "https://other.example.com:6443" },
  };
  await api.call("POST", "/v1/apply", { documents: [{ ...annotated, spec: moved }] });
  expect(await api.table.get(keys.cluster("c1"))).toMatchObject({ version: created + 2, generation: 2 });
  expect(versions(api)).toEqual(first);
  expect(woken(api)).toEqual([]);
  await api.call("POST", "/v1/apply", { documents: [cluster("c1", { env: "prod" })] });
  expect(versions(api)).not.toEqual(first);
});

test("a change of the fleet reads the groups in batches", { timeout: 60_000 }, async () => {
  const table = new MemoryTable({ pageItems: 1000 });
  const counted = countedTable(table);
  const api = apiFixture(table, counted.table);
  for (const name of names(150, "g"))
    await api.call("POST", "/v1/apply", { documents: [group(name, { names: ["c2"] })] });
  api.takeMessages();
  const { requests } = counted.counts;
  await api.call("POST", "/v1/apply", { documents: [cluster("c1", { env: "dev" })] });
  expect(woken(api)).toEqual([]);
  expect(counted.counts.requests - requests).toBeLessThan(10);
});
