/** From the publication of a chart to the first cluster that has it: from a registry, and from git. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { registerClusters } from "#local/machine/register-clusters.ts";
import { type Stack, startStack } from "#local/machine/stack.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import type { BenchOptions, Figures } from "#test/bench/bench.ts";
import { medianRatio, spread } from "#test/bench/figures.ts";
import { inTurns } from "#test/bench/in-turns.ts";
import { RawCluster } from "#test/bench/kube-requests.ts";
import { PushPace } from "#test/bench/push-pace.ts";
import { embeddedVersion } from "#test/bench/server-version.ts";
import { below } from "#test/support/chart-fixture.ts";
import { tarGz } from "#test/support/tar-gz.ts";

/** AWS ticks once a minute. A lost message would show. */
const tickMs = 60_000;
const longestMs = 120_000;
const pollEveryMs = 10;
const chart = {
  "values.yaml": "region: none\n",
  "templates/settings.yaml":
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: "{{ .Release.Namespace }}"}\ndata: {version: "{{ .Chart.Version }}"}\n',
  "templates/namespace.yaml": 'apiVersion: v1\nkind: Namespace\nmetadata: {name: "{{ .Release.Namespace }}"}\n',
};

interface ChartTimes {
  readonly target: string;
  readonly ratio: number;
  readonly figures: Readonly<Record<string, Figures>>;
}

/** Both Sources are told of the publication at once: git by its webhook, the registry's by the request of a person. */
export async function chartToCluster({
  rounds,
  say,
}: Required<Pick<BenchOptions, "rounds" | "say">>): Promise<ChartTimes> {
  const scratch = await mkdtemp(join(tmpdir(), "starling-bench-"));
  const stack = await startStack({ repositories: scratch, tickEveryMs: tickMs, registry: true });
  try {
    const connection = stack.clusters.addCluster("c-0");
    await registerClusters([{ connection }], stack.machine, stack.session);
    const cluster = new RawCluster(connection);
    let version = 0;
    const pace = new PushPace();
    const publish = { oci: () => publishToRegistry(stack, version), git: () => commitChart(stack, version) };
    await stack.git.createRepository("chart", {});
    await publish.oci();
    await publish.git();
    pace.pushed();
    await stack.session.apply(documents(stack));
    for (const from of ["oci", "git"] as const) await untilSeen(cluster, from, version);
    const measure = (from: keyof typeof publish) => async () => {
      if (from === "git") await pace.next();
      version += 1;
      const started = performance.now();
      await publish[from]();
      if (from === "git") pace.pushed();
      await untilSeen(cluster, from, version);
      return performance.now() - started;
    };
    const { ours, theirs } = await inTurns(rounds, measure("oci"), measure("git"));
    const figures = {
      "chart from a registry to a cluster": spread(ours),
      "chart from git to a cluster": spread(theirs),
    };
    say(`charts: ${JSON.stringify(figures)}`);
    cluster.close();
    return {
      target: `embedded ${await embeddedVersion(stack.clusters.connections())}`,
      ratio: medianRatio(ours, theirs),
      figures,
    };
  } finally {
    await stack.stop();
    await rm(scratch, { recursive: true, force: true });
  }
}

async function publishToRegistry({ registry, session }: Stack, version: number): Promise<void> {
  const files = Object.entries(chartOf(version)).map(([name, body]) => ({ name, body }));
  registry?.pushChart("charts/web", `1.0.${version}`, await tarGz(files));
  if (version > 0) await session.call("POST", "/v1/namespaces/bench/sources/oci/reconcile");
}

async function commitChart({ git }: Stack, version: number): Promise<void> {
  await git.commitFiles("chart", chartOf(version), { message: `1.0.${version}` });
}

function chartOf(version: number): Readonly<Record<string, string>> {
  return below("web", { "Chart.yaml": `apiVersion: v2\nname: web\nversion: 1.0.${version}\n`, ...chart });
}

function documents({ git, gitSpec, registry }: Stack): readonly unknown[] {
  const upstreams = {
    oci: { helm: { url: `oci://${registry?.host}/charts`, chart: "web" } },
    git: { git: { ...gitSpec(git.url("chart")), ref: { branch: "main" } } },
  };
  return Object.entries(upstreams).flatMap(([name, upstream]) => [
    {
      apiVersion: ourApiVersion,
      kind: "Source",
      metadata: { name, namespace: "bench" },
      spec: { ...upstream, interval: "1h" },
    },
    {
      apiVersion: ourApiVersion,
      kind: "SyncGroup",
      metadata: { name, namespace: "bench" },
      spec: {
        clusters: { all: true },
        templates: [
          {
            name: "web",
            source: name,
            path: name === "git" ? "web" : ".",
            render: { helm: {} },
            apply: { interval: "1h", defaultNamespace: `from-${name}` },
          },
        ],
      },
    },
  ]);
}

async function untilSeen(cluster: RawCluster, from: string, version: number): Promise<void> {
  const deadline = performance.now() + longestMs;
  const path = `/api/v1/namespaces/from-${from}/configmaps`;
  while (performance.now() < deadline) {
    if ((await cluster.send({ method: "GET", path })).includes(`"1.0.${version}"`)) return;
    await sleep(pollEveryMs);
  }
  throw new Error(`the chart 1.0.${version} from ${from} did not come within ${longestMs / 1000} s`);
}
