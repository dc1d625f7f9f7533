import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { makeLocalHome, settings } from "#test/support/local-home.ts";
import type { Ran } from "#test/support/started-process.ts";

const home = await makeLocalHome();
const { cli } = home;

const brokenDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.invalid/web:1"}]}
`;

beforeAll(async () => {
  await home.commit({ "settings.yaml": settings("one", "default") });
  expect(await cli("local up --clusters 3 --repo shop")).toMatchObject({ code: 0 });
});

afterAll(async () => {
  await cli("local down");
  home.remove();
});

describe("starling on one machine", () => {
  test("a machine rolls a push out to every cluster, halts at a broken one, and deletes what it made", async () => {
    const { url, credentials } = (await home.status()).repository;
    writeFileSync(
      join(home.folder, "fleet.yaml"),
      `apiVersion: starling.dev/v1alpha1
kind: Source
metadata: {name: shop}
spec: {git: ${JSON.stringify({ url, credentials })}}
---
apiVersion: starling.dev/v1alpha1
kind: SyncGroup
metadata: {name: shop}
spec:
  clusters: {all: true}
  templates: [{name: web, source: shop}]
  rollout:
    maxConcurrent: 1
    progressDeadline: 6s
    stages:
      - {name: canary, clusters: {selector: {matchLabels: {ring: canary}}}}
      - {name: rest}
`,
    );
    expect(await cli("apply -f fleet.yaml")).toMatchObject({ code: 0 });
    const first = await cli("rollout status shop -w --timeout 60s");
    expect(first).toMatchObject({ code: 0 });
    expect(first.out).toMatch(/^shop .* newest rollout 1: .*\(Complete\)/);
    const syncs = await cli("get syncs -A -o json --limit 2");
    expect(JSON.parse(syncs.out)).toMatchObject({ items: [{}, {}], metadata: { continue: expect.any(String) } });
    const token = JSON.parse(syncs.out).metadata.continue as string;
    expect(JSON.parse((await cli(`get syncs -A -o json --continue ${token}`)).out).items).toHaveLength(1);
    expect((await cli("get sg -A --no-headers")).out).toMatch(/^default +shop .* 3\/3 .* Complete /);

    await home.commit({ "web.yaml": brokenDeployment });
    await home.push();
    let second: Ran = { code: 0, out: "", err: "" };
    const deadline = Date.now() + 60_000;
    while (!/^shop .* newest rollout 2: /.test(second.out) && Date.now() < deadline) {
      second = await cli("rollout status shop -w --timeout 60s");
    }
    expect(second).toMatchObject({ code: 1 });
    expect(second.out).toMatch(/canary-1 +canary +Failed .* DeadlineExceeded/);
    expect((await cli("describe sync/shop.web --cluster canary-1")).out).toContain("ImagePullBackOff");

    expect(await cli("delete sg/shop --yes --wait --timeout 60s")).toMatchObject({ code: 0 });
    expect(JSON.parse((await cli("get syncs -o json")).out).items).toEqual([]);
    expect(await cli("delete source/shop --yes")).toMatchObject({ code: 0, out: "source/shop deleted\n" });
  });

  test("no other user may read the files of a machine", () => {
    const folder = join(home.folder, ".local", "state", "starling", "local");
    const paths = readdirSync(folder, { recursive: true, encoding: "utf8" });
    const parts = [
      "identity.json",
      "machine.json",
      "git-credentials",
      "log",
      "aws/secrets.json",
      "aws/dynamodb.sqlite",
    ];
    expect(paths).toEqual(expect.arrayContaining([...parts, "clusters", "repositories/shop.git/HEAD"]));
    const open = [folder, ...paths.map((path) => join(folder, path))].filter((path) => statSync(path).mode & 0o077);
    expect(open).toEqual([]);
  });

  test("local faults makes calls fail until the faults are cleared", async () => {
    expect(await cli("local faults set aws everyday sqs.duplicate=1 --seed 7")).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^TARGET +SEED +INJECTED +FAULTS\naws +7 +\d+ +everyday sqs.duplicate=1\n$/),
    });
    const { server } = JSON.parse((await cli("local kubeconfig")).out).clusters[1].cluster as { server: string };
    expect(await cli("local faults set clusters/early-1 latency=20ms network=refused")).toMatchObject({ code: 0 });
    const moved = JSON.parse((await cli("local kubeconfig")).out).clusters[1].cluster as { server: string };
    expect(new URL(moved.server).port).not.toBe(new URL(server).port);
    const faults = JSON.parse((await cli("local faults -o json")).out);
    expect(faults).toMatchObject({
      kind: "FaultsList",
      items: [
        { target: "aws", seed: 7, settings: ["everyday", "sqs.duplicate=1"] },
        { target: "clusters/canary-1", settings: [] },
        { target: "clusters/early-1", settings: ["latency=20ms", "network=refused"] },
        { target: "clusters/broad-1", settings: [] },
      ],
    });
    const status = await cli("local status");
    expect(status.out).toContain(
      "faults:      aws everyday sqs.duplicate=1; clusters/early-1 latency=20ms network=refused",
    );
    expect((await cli("local status -o json")).out).not.toContain('"token"');
    expect(await cli("local faults clear")).toMatchObject({ code: 0 });
    expect((await cli("local status")).out).toContain("faults:      none");
  });

  test("a machine can be up only once, and local down leaves no process and no context", async () => {
    const { pid } = await home.status();
    expect((await cli("local up")).err).toContain("local is already up");
    expect(await cli("local down")).toMatchObject({ code: 0, out: "local is down\n" });
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow(), { timeout: 10_000 });
    expect((await cli("context list")).err).toContain("no context");
    expect((await cli("local status")).code).toBe(1);
  });
});
