import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { makeLocalHome, settings } from "#test/support/local-home.ts";
import { processesWith } from "#test/support/processes.ts";

const home = await makeLocalHome();
const { cli } = home;
const state = join(home.folder, "state");
const up = (...args: readonly string[]) => cli(["local", "up", "--state", state, ...args]);

interface SyncItem {
  readonly spec: { readonly cluster: string };
  readonly status: { readonly state: string; readonly desired?: { readonly rollout: number } };
}

async function untilSyncs(holds: (syncs: readonly SyncItem[]) => boolean): Promise<void> {
  const read = async () => {
    const { items } = JSON.parse((await cli("get syncs -o json")).out) as { readonly items: readonly SyncItem[] };
    expect(holds(items)).toBe(true);
  };
  await vi.waitFor(read, { timeout: 90_000, interval: 300 });
}

async function kill(): Promise<void> {
  const { pid } = await home.status(state);
  process.kill(pid, "SIGKILL");
  await vi.waitFor(() => expect(processesWith(state)).toEqual([]), { timeout: 20_000 });
}

afterAll(async () => {
  await cli(["local", "down", "--state", state]);
  home.remove();
});

test("a machine that was killed during a rollout continues it at its next start, and the rollout does not halt", async () => {
  const first = await home.commit({ "settings.yaml": settings("one") });
  expect(await up("--clusters", "3", "--repo", "shop")).toMatchObject({ code: 0 });
  const { url, credentials } = (await home.status(state)).repository;
  const source = `{apiVersion: starling.dev/v1alpha1, kind: Source, metadata: {name: shop}, spec: {git: ${JSON.stringify({ url, credentials })}}}`;
  const group = `apiVersion: starling.dev/v1alpha1
kind: SyncGroup
metadata: {name: shop}
spec:
  clusters: {all: true}
  templates: [{name: web, source: shop, apply: {defaultNamespace: default}}]
  rollout: {maxConcurrent: 3, progressDeadline: 150s}
`;
  writeFileSync(join(home.folder, "fleet.yaml"), `${source}\n---\n${group}`);
  expect(await cli("apply -f fleet.yaml")).toMatchObject({ code: 0 });
  await home.untilStatus(`syncgroup:   default/shop  Complete  3/3  main@sha1:${first}`, state);

  let rollout = 1;
  let commit = first;
  for (const value of ["two", "three"]) {
    rollout += 1;
    expect(await cli(["local", "faults", "set", "clusters/canary-1", "network=hangs", "--state", state])).toMatchObject(
      {
        code: 0,
      },
    );
    commit = await home.commit({ "settings.yaml": settings(value) });
    await home.push(state);
    // The other clusters are done, so the worker of this one has started, too, and waits for an answer.
    await untilSyncs((syncs) =>
      syncs.every(
        ({ spec, status }) =>
          status.desired?.rollout === rollout && (status.state === "Ready") === (spec.cluster !== "canary-1"),
      ),
    );
    await kill();
    expect(await up()).toMatchObject({ code: 0 });
    await home.untilStatus(`syncgroup:   default/shop  Complete  3/3  main@sha1:${commit}`, state);
  }
  const { items } = JSON.parse((await cli("rollout list shop -o json")).out);
  const phases = items.flatMap((one: { status: { transitions: readonly { phase: string }[] } }) =>
    one.status.transitions.map(({ phase }) => phase),
  );
  expect(phases.filter((phase: string) => phase !== "Updating")).toEqual(["Passed", "Passed", "Passed"]);
  expect(items).toHaveLength(3);
  const value = await home.kubectl(
    join(state, "kubeconfig"),
    "--context canary-1 get configmap settings -o jsonpath={.data.value}",
  );
  expect(value).toBe("three");
}, 600_000);
