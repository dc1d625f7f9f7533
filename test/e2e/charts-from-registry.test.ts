/** Charts that are published to a registry or a Helm repository, with values of each region from git. */
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { startRegistryServer } from "#local/registry/registry-server.ts";
import {
  type GroupInput,
  groupDocument,
  ringStages,
  type SourceInput,
  sourceDocument,
  yaml,
} from "#test/support/e2e-documents.ts";
import { namespace, startWorld, type World } from "#test/support/e2e-world.ts";
import { type FileAnswer, startFileServer } from "#test/support/file-server.ts";
import { fleetTargets } from "#test/support/fleet-targets.ts";
import { packedChart } from "#test/support/packed-chart.ts";

/** The regions of the clusters. */
const clusters = { "canary-1": "eu", "broad-1": "us", "broad-2": "eu" } as const;
const configs = `/api/v1/namespaces/${namespace}/configmaps`;
const rate = 4;
/** The shortest interval of a Source. */
const interval = "10s";

interface Publisher {
  /** The `spec.helm` of the Source. */
  readonly helm: NonNullable<SourceInput["helm"]>;
  /** Publishes a version. @returns the digest in its revision. */
  publish(version: string): Promise<string>;
  /** The number of listings that the publisher has answered. */
  listings(): number;
  stop(): Promise<void>;
}

async function registry(): Promise<Publisher> {
  let listings = 0;
  const server = await startRegistryServer({
    onRequest({ url = "" }) {
      if (url.includes("/tags/list")) listings += 1;
    },
  });
  return {
    helm: { url: `oci://${server.host}/acme/charts`, chart: "web", ref: { semver: "^4.2" } },
    publish: async (version) => server.pushChart("acme/charts/web", version, await packedChart("web", version)),
    listings: () => listings,
    stop: () => server.stop(),
  };
}

async function helmRepository(): Promise<Publisher> {
  const files = new Map<string, FileAnswer>();
  const entries: object[] = [];
  const server = await startFileServer(({ url }) => files.get(url) ?? { status: 404 });
  return {
    helm: { url: `${server.url}/charts`, chart: "web", ref: { semver: "^4.2" } },
    async publish(version) {
      const packed = await packedChart("web", version);
      const digest = createHash("sha256").update(packed).digest("hex");
      entries.push({ version, digest, urls: [`web-${version}.tgz`] });
      files.set(`/charts/web-${version}.tgz`, { body: packed });
      files.set("/charts/index.yaml", { body: yaml({ apiVersion: "v1", entries: { web: entries } }) });
      return `sha256:${digest}`;
    },
    listings: () => server.asked.filter(({ url }) => url === "/charts/index.yaml").length,
    stop: () => server.stop(),
  };
}

const group: GroupInput = {
  clusters: { all: true },
  templates: [
    {
      name: "web",
      source: "chart",
      path: ".",
      render: { helm: { valuesFrom: [{ source: "values", path: "env/{{ cluster.labels.region }}.yaml" }] } },
      apply: { defaultNamespace: namespace, interval: "4h" },
    },
  ],
  rollout: { maxConcurrent: 3, stages: ringStages("canary", "broad") },
};

async function begin(world: World, { helm }: Publisher): Promise<string> {
  await world.join(
    ...Object.entries(clusters).map(([name, region]) => ({
      name,
      labels: { ring: name.split("-")[0] ?? "", region },
    })),
  );
  const commit = await world.createRepository("values", {
    "env/eu.yaml": "region: eu-1\n",
    "env/us.yaml": "region: us-1\n",
  });
  const git = { url: world.git.url("values"), ref: { branch: "main" } };
  await world.apply(
    sourceDocument("chart", { helm, interval }),
    sourceDocument("values", { git, interval: "1h" }),
    groupDocument("web", group),
  );
  return commit;
}

/** Waits until the group has completed a rollout of the revision. @returns its number. */
async function completed(world: World, revision: string): Promise<number> {
  return world.waitFor(`web at ${revision}`, async () => {
    const { status } = await world.group("web");
    return status.revision === revision && status.state === "Complete" && status.rollout;
  });
}

/** The data of the chart's ConfigMap by cluster, read at the API servers. */
async function settings(world: World): Promise<Record<string, unknown>> {
  const seen: Record<string, unknown> = {};
  for (const name of Object.keys(clusters)) {
    const { object } = await world.kubectl(name, { method: "GET", path: configs });
    const items = object.items as readonly { readonly metadata: { readonly name: string }; readonly data: unknown }[];
    seen[name] = items.filter((item) => item.metadata.name !== "kube-root-ca.crt").map(({ data }) => data);
  }
  return seen;
}

const expected = (version: string, us = "us-1") => ({
  "canary-1": [{ version, region: "eu-1" }],
  "broad-1": [{ version, region: us }],
  "broad-2": [{ version, region: "eu-1" }],
});

function written(world: World): readonly string[] {
  const writes = world.fleet.requests().filter(({ method }) => method !== "GET");
  return [...new Set(writes.map(({ cluster }) => cluster))];
}

/** The revisions that the group's rollout pins together: of the chart, and of the values beside it. */
async function pins(world: World): Promise<readonly (string | undefined)[]> {
  const [template] = (await world.rollout("web")).spec.plan.templates;
  return [template?.revision, ...(template?.besides ?? []).map(({ revision }) => revision)];
}

describe.each(fleetTargets)("on $name", (fleet) => {
  test.each([
    { from: "an OCI registry", publisher: registry },
    { from: "a Helm repository", publisher: helmRepository },
  ])(
    "a version in the range from $from rolls through the stages without a commit, another one does not [source.helm.values]",
    async ({ publisher }) => {
      const world = await startWorld({ target: fleet, rate });
      const charts = await publisher();
      try {
        const first = await charts.publish("4.2.0");
        await charts.publish("4.1.9");
        const commit = await begin(world, charts);
        const number = await completed(world, `4.2.0@${first}`);
        expect(await pins(world)).toEqual([`4.2.0@${first}`, `main@sha1:${commit}`]);
        expect(await settings(world)).toEqual(expected("4.2.0"));

        world.fleet.clearRequests();
        await charts.publish("5.0.0");
        await charts.publish("4.3.0-rc.1");
        const before = charts.listings();
        await world.waitFor("two more polls", async () => charts.listings() >= before + 2);
        expect((await world.source("chart")).status.artifact?.revision).toBe(`4.2.0@${first}`);
        expect((await world.group("web")).status.rollout).toBe(number);
        expect(written(world)).toEqual([]);

        const next = await charts.publish("4.10.0");
        await completed(world, `4.10.0@${next}`);
        expect(await pins(world)).toEqual([`4.10.0@${next}`, `main@sha1:${commit}`]);
        expect(await settings(world)).toEqual(expected("4.10.0"));
        expect(written(world)[0]).toBe("canary-1");

        // A push to the values reaches the region that it changes, with the same chart.
        world.fleet.clearRequests();
        const pushed = await world.push("values", { "env/us.yaml": "region: us-2\n" });
        await world.waitFor("the rollout of the values", async () => {
          const [, values] = await pins(world);
          return values?.endsWith(pushed) === true && (await world.rollout("web")).status.phase === "Complete";
        });
        expect(await pins(world)).toEqual([`4.10.0@${next}`, `main@sha1:${pushed}`]);
        expect(await settings(world)).toEqual(expected("4.10.0", "us-2"));
        expect(written(world)).toEqual(["broad-1"]);
      } finally {
        await world.close();
        await charts.stop();
      }
    },
  );
});
