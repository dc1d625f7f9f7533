import type { InterceptedRequest } from "@starling/embedded-apiserver";
import { afterEach, describe, expect, test } from "vitest";
import type { LambdaHandler } from "#local/aws/lambda/lambda-context.ts";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { configMap, groupDocument, namespaceManifest, sourceDocument } from "#test/support/e2e-documents.ts";
import { namespace, startWorld, type World } from "#test/support/e2e-world.ts";
import { mortalSandboxes } from "#test/support/mortal-sandboxes.ts";

const rate = 20;
/** A lease lasts two real seconds. */
const timeoutSeconds = { apply: 40 };
const configs = `/api/v1/namespaces/${namespace}/configmaps`;

let world: World | undefined;

afterEach(async () => {
  await world?.close();
  world = undefined;
});

interface Workers {
  readonly sandboxes: (functionName: string, wire: () => LambdaHandler) => LambdaHandler;
  /** Resolves when every invocation has ended, including abandoned ones. */
  allEnded(): Promise<void>;
}

function watchedWorkers(): Workers {
  const running = new Set<Promise<unknown>>();
  return {
    sandboxes(_name, wire) {
      const handler = wire();
      return (event, context) => {
        const work = Promise.resolve(handler(event, context));
        const over = () => running.delete(work);
        running.add(work);
        work.then(over, over);
        return work;
      };
    },
    async allEnded() {
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
}

type Hold = (request: InterceptedRequest) => boolean;

/** Holds the first request that matches each description, until `releaseTemplates` is called. */
function holdRequests(holds: readonly Hold[]) {
  const release = Promise.withResolvers<"pass">();
  const waiting = new Set(holds);
  const held: InterceptedRequest[] = [];
  return {
    held,
    releaseTemplates: () => release.resolve("pass"),
    intercept(request: InterceptedRequest) {
      for (const hold of waiting) {
        if (!hold(request)) continue;
        waiting.delete(hold);
        held.push(request);
        return release.promise;
      }
      return "pass" as const;
    },
  };
}

/** Matches the n-th request of a cluster. A write is held after its effect, because a write on its way cannot be undone. */
function nthRequest(cluster: string, n: number): Hold {
  let count = 0;
  let writing: string | undefined;
  return (request) => {
    if (request.cluster !== cluster) return false;
    if (request.phase === "after") return request.path === writing;
    count += 1;
    if (count !== n) return false;
    if (request.method !== "PATCH") return true;
    writing = request.path;
    return false;
  };
}

async function webWorld(clusters: readonly string[], interval: string, workers: Pick<Workers, "sandboxes">) {
  const made = await startWorld({
    rate,
    timeoutSeconds,
    overrun: "abandoned",
    sandboxes: workers.sandboxes,
    // Faults would make other workers old than those that the test holds.
    faults: quiet,
  });
  world = made;
  await made.join(...clusters.map((name) => ({ name })));
  const commit = await made.createRepository("app", {
    "deploy/namespace.yaml": namespaceManifest,
    "deploy/a.yaml": configMap("a", { revision: "1" }),
    "deploy/b.yaml": configMap("b", { revision: "1" }),
  });
  await made.apply(
    sourceDocument("app", { git: { url: made.git.url("app"), ref: { branch: "main" } } }),
    groupDocument("web", {
      clusters: { all: true },
      templates: [{ name: "app", source: "app", path: "deploy", apply: { interval } }],
      rollout: { maxConcurrent: clusters.length, progressDeadline: "4h" },
    }),
  );
  await made.untilInSync("web", commit);
  return made;
}

const rowsOfWorkers = new Set(["SyncOnCluster", "Cluster", "Slot", "Target", "CatchUp", "StageRun"]);

/** The objects of the clusters and the rows about them, with their versions. */
async function everything(made: World) {
  const rows = (await made.rows()).filter(({ type }) => rowsOfWorkers.has(type));
  const clusters: Record<string, unknown> = {};
  for (const { name } of made.fleet.connections()) clusters[name] = await made.fleet.objects(name);
  return { clusters, rows: rows.sort((a, b) => (`${a.pk}|${a.sk}` < `${b.pk}|${b.sk}` ? -1 : 1)) };
}

test("an object that a dying worker made is deleted when the next revision does not have it", async () => {
  const mortal = mortalSandboxes();
  try {
    const made = await webWorld(["c01"], "4h", mortal);
    let dying: "not yet" | "now" | "done" = "not yet";
    made.fleet.intercept(({ method, path, phase }) => {
      if (method === "PATCH" && path === `${configs}/stray` && phase === "after" && dying === "not yet") dying = "now";
      return "pass";
    });
    mortal.judgeBy(({ functionName }) => {
      if (functionName !== "apply" || dying !== "now") return undefined;
      dying = "done";
      return "before";
    });
    await made.push("app", { "deploy/stray.yaml": configMap("stray", { revision: "2" }) });
    await made.waitFor("the worker is dead", async () => dying === "done");
    expect((await made.kubectl("c01", { method: "GET", path: `${configs}/stray` })).status).toBe(200);
    await made.untilInSync("web", await made.push("app", { "deploy/stray.yaml": null }));
    expect((await made.kubectl("c01", { method: "GET", path: `${configs}/stray` })).status).toBe(404);
  } finally {
    mortal.stop();
  }
});

describe("a worker that wakes up after its lease", () => {
  test("a worker that wakes up after its lease changes nothing, at whichever request it slept", async () => {
    const requests = 14;
    const clusters = Array.from({ length: requests }, (_, index) => `c${String(index + 1).padStart(2, "0")}`);
    const workers = watchedWorkers();
    const made = await webWorld(clusters, "4h", workers);

    const asleep = holdRequests(clusters.map((cluster, index) => nthRequest(cluster, index + 1)));
    made.fleet.intercept(asleep.intercept);
    const second = await made.push("app", {
      "deploy/a.yaml": configMap("a", { revision: "2" }),
      "deploy/b.yaml": null,
      "deploy/c.yaml": configMap("c", { revision: "2" }),
    });
    await made.untilInSync("web", second);
    const third = await made.push("app", {
      "deploy/a.yaml": configMap("a", { revision: "3" }),
      "deploy/b.yaml": configMap("b", { revision: "3" }),
      "deploy/c.yaml": null,
    });
    await made.untilInSync("web", third);

    const before = await everything(made);
    asleep.releaseTemplates();
    await workers.allEnded();
    expect(await everything(made)).toEqual(before);
    const woke = asleep.held.map(({ method, path }) => `${method} ${path.split("/").at(-1)}`);
    expect(woke).toHaveLength(requests);
    console.log(`fell asleep at ${woke.join(", ")}`);
  });

  test("a write that reaches the cluster after the lease is repaired as drift", async () => {
    const workers = watchedWorkers();
    const made = await webWorld(["c01"], "10s", workers);
    const late = holdRequests([
      ({ method, path, phase }) => method === "PATCH" && path === `${configs}/a` && phase === "before",
    ]);
    made.fleet.intercept(late.intercept);
    await made.push("app", { "deploy/a.yaml": configMap("a", { revision: "2" }) });
    await made.waitFor("the old worker's write is under way", async () => late.held.length > 0);
    const third = await made.push("app", { "deploy/a.yaml": configMap("a", { revision: "3" }) });
    await made.untilInSync("web", third);

    late.releaseTemplates();
    await workers.allEnded();
    const revision = async () => {
      const { object } = await made.kubectl("c01", { method: "GET", path: `${configs}/a` });
      return (object.data as { readonly revision?: string }).revision;
    };
    await made.waitFor("the newest revision is back", async () => (await revision()) === "3");
  });
});
