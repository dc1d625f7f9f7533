/** What people press around a push of the chaos story, chosen by the seed. At its end they have cleared what they stopped. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createRandom } from "#local/base/random.ts";
import { namespace, type World } from "#test/support/e2e-world.ts";
import { handUserAgent } from "#test/support/kube-call.ts";

/** `stops` and `clears` are requests to the API. Between them, no cluster of `spared` may get the new content. */
interface Stop {
  readonly stops: string;
  readonly clears: string;
  readonly spared: readonly string[] | "all";
}

const group = `/v1/namespaces/${namespace}/syncgroups/web`;
const hold: Stop = { stops: `${group}/hold`, clears: `${group}/release`, spared: "all" };

/** @param isNew - whether a request with this path writes what only the pushed revision has. */
export async function stopAndClear(
  world: World,
  {
    seed,
    push,
    isNew,
  }: { readonly seed: number; readonly push: () => Promise<string>; readonly isNew: (path: string) => boolean },
): Promise<string> {
  const random = createRandom(seed + 4_000_003);
  const names = world.fleet.connections().map(({ name }) => name);
  const name = names[random.integer(0, names.length - 1)] ?? "";
  const cluster = `/v1/clusters/${name}`;
  const cordon: Stop = { stops: `${cluster}/cordon`, clears: `${cluster}/uncordon`, spared: [name] };
  const { stops, clears, spared } = random.chance(0.5) ? hold : cordon;
  const broken: string[] = [];
  await world.session.call("POST", stops, { reason: "somebody looks into it" });
  const end = world.fleet.onRequest(({ cluster: written, method, path, result, dryRun, userAgent }) => {
    if (method === "GET" || dryRun || userAgent === handUserAgent || result < 200 || result >= 300) return;
    if ((spared === "all" || spared.includes(written)) && isNew(path)) broken.push(`${method} ${written} ${path}`);
  });
  try {
    const commit = await push();
    await world.waitFor("the pushed revision is known", async () =>
      (await world.source("app")).status.artifact?.revision.endsWith(commit),
    );
    await sleep(random.integer(0, 1500));
    assert.deepEqual(broken, [], `a cluster got what was stopped by ${stops}`);
    return commit;
  } finally {
    end();
    await world.session.call("POST", clears, {});
  }
}
