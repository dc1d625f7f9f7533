import { describe, expect, it } from "vitest";
import type { JsonObject } from "#shared/domain/json.ts";
import { stringAt } from "#shared/domain/kube-object.ts";
import { holdsClaim, nextParent, parentName, type SyncClaim, setIdOf } from "#shared/domain/parent-object.ts";

const claim: SyncClaim = {
  installationId: "inst-1",
  syncNamespace: "shop",
  syncName: "web.app",
  syncUid: "uid-1",
  generation: 4,
  fence: 9,
  renderDigest: "sha256:new",
};
const configMap = { group: "", kind: "ConfigMap" };
const deployment = { group: "apps", kind: "Deployment" };

function written(current: JsonObject | undefined, by: SyncClaim = claim): JsonObject {
  const decision = nextParent(current, by, { groupKinds: [configMap] });
  if (decision.kind !== "write") throw new Error(decision.message);
  return { ...decision.object, metadata: { ...decision.object.metadata, resourceVersion: "7", uid: "u" } };
}

/** What a parent remembers of earlier attempts, newest last. */
function attemptedIn(parent: JsonObject | undefined): readonly string[] {
  return JSON.parse(stringAt(parent, "metadata", "annotations", "starling.dev/attempted") ?? "[]");
}

describe("the id of a set", () => {
  it("is KEP-3659's hash of the parent", () => {
    // printf 'shop.web.app.starling-system.ConfigMap.' | openssl dgst -sha256 -binary | base64 | tr '+/' '-_' | tr -d =
    expect(setIdOf(claim)).toBe("applyset-u_otr-fHWNhE3H70kmFzhSmQQDqhaW2O8_iNw7QqH1k-v1");
  });

  it("fits a label", () => {
    expect(setIdOf(claim).length).toBeLessThanOrEqual(63);
  });

  it.each([
    ["shop", "web.app", "shop.web.app"],
    ["shop", "Web_App", /^shop-web-app-[0-9a-f]{16}$/],
    ["shop", "x".repeat(300), /^shop-x{175}-[0-9a-f]{16}$/],
  ])("a parent of %s/%s is called", (syncNamespace, syncName, name) => {
    expect(parentName({ syncNamespace, syncName })).toMatch(name);
  });
});

describe("nextParent", () => {
  it("creates a parent that other tools can read", () => {
    const decision = nextParent(undefined, claim, { groupKinds: [deployment, configMap] });
    expect(decision).toMatchObject({
      kind: "write",
      object: {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: {
          name: "shop.web.app",
          namespace: "starling-system",
          labels: { "applyset.kubernetes.io/id": setIdOf(claim) },
          annotations: {
            "applyset.kubernetes.io/tooling": "starling/v0.1",
            "applyset.kubernetes.io/contains-group-kinds": "ConfigMap,Deployment.apps",
          },
        },
      },
      record: { generation: 4, fence: 9, attempted: ["sha256:new"] },
    });
    expect(JSON.stringify(decision)).not.toContain("resourceVersion");
  });

  it("writes under the resourceVersion it read, and keeps the kinds that were there", () => {
    const decision = nextParent(written(undefined), claim, { groupKinds: [deployment] });
    expect(decision).toMatchObject({
      object: {
        metadata: {
          resourceVersion: "7",
          annotations: { "applyset.kubernetes.io/contains-group-kinds": "ConfigMap,Deployment.apps" },
        },
      },
    });
  });

  it("remembers what was attempted before, each once, until it is settled", () => {
    const first = written(undefined, { ...claim, renderDigest: "sha256:a" });
    const second = written(first, { ...claim, renderDigest: "sha256:b" });
    const third = written(second, { ...claim, renderDigest: "sha256:a" });
    expect(attemptedIn(third)).toEqual(["sha256:b", "sha256:a"]);
    const next = { ...claim, generation: 5, renderDigest: "sha256:c" };
    expect(nextParent(third, next, { groupKinds: [deployment], settledThrough: 3 })).toMatchObject({
      record: { attempted: ["sha256:b", "sha256:a", "sha256:c"] },
    });
    expect(nextParent(third, next, { groupKinds: [deployment], settledThrough: 4 })).toMatchObject({
      object: { metadata: { annotations: { "applyset.kubernetes.io/contains-group-kinds": "Deployment.apps" } } },
      record: { attempted: ["sha256:c"] },
    });
  });

  it("does not grow without end", () => {
    let parent: JsonObject | undefined;
    for (let n = 0; n < 50; n += 1) parent = written(parent, { ...claim, renderDigest: `sha256:${n}` });
    expect(attemptedIn(parent)).toHaveLength(20);
    expect(attemptedIn(parent).at(-1)).toBe("sha256:49");
  });

  it.each<readonly [string, Partial<SyncClaim>, string]>([
    ["another installation", { installationId: "inst-2" }, "ForeignOwner"],
    ["another Sync of the same name", { syncUid: "uid-2" }, "ForeignOwner"],
    ["a newer generation", { generation: 5 }, "ClusterAhead"],
    ["a newer fence", { fence: 10 }, "ClusterAhead"],
    ["a newer generation under an older fence", { generation: 5, fence: 1 }, "ClusterAhead"],
  ])("refuses %s", (_name, theirs, reason) => {
    const decision = nextParent(written(undefined, { ...claim, ...theirs }), claim, { groupKinds: [configMap] });
    expect(decision).toMatchObject({ kind: "refuse", reason });
  });

  it.each<readonly [string, Partial<SyncClaim>]>([
    ["the same claim, after a crash", {}],
    ["an older generation", { generation: 3, fence: 99 }],
    ["an older fence", { fence: 8 }],
  ])("takes over %s", (_name, theirs) => {
    expect(nextParent(written(undefined, { ...claim, ...theirs }), claim, { groupKinds: [configMap] }).kind).toBe(
      "write",
    );
  });

  it("refuses a parent of another tool", () => {
    const theirs = {
      metadata: { name: "shop.web.app", annotations: { "applyset.kubernetes.io/tooling": "kubectl/v1.34" } },
    };
    expect(nextParent(theirs, claim, { groupKinds: [] })).toMatchObject({ kind: "refuse", reason: "ForeignOwner" });
  });

  it("refuses a ConfigMap that is no parent", () => {
    expect(nextParent({ metadata: { name: "shop.web.app" } }, claim, { groupKinds: [] })).toMatchObject({
      reason: "ForeignOwner",
    });
  });

  it("reads a list that somebody broke as empty", () => {
    const parent = written(undefined);
    const metadata = parent.metadata as { annotations: JsonObject };
    const annotations = { ...metadata.annotations, "starling.dev/attempted": "not json" };
    const decision = nextParent({ metadata: { ...metadata, annotations } }, claim, { groupKinds: [] });
    expect(decision).toMatchObject({ record: { attempted: ["sha256:new"] } });
  });
});

it("holdsClaim is about this very attempt", () => {
  expect(holdsClaim(written(undefined), claim)).toBe(true);
  expect(holdsClaim(written(undefined), { ...claim, fence: 8 })).toBe(false);
  expect(holdsClaim(undefined, claim)).toBe(false);
});
