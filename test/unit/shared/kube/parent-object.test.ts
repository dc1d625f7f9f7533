import { describe, expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import {
  holdsClaim,
  nextParent,
  parentName,
  parentRefusal,
  type SyncClaim,
  setIdOf,
} from "#shared/kube/parent-object.ts";

const claim: SyncClaim = {
  installationId: "inst-1",
  syncNamespace: "shop",
  syncName: "web.app",
  syncUid: "uid-1",
  attempt: 4,
  fence: 9,
  renderDigest: "sha256:new",
  revision: "main@sha1:1",
  token: "token-4",
  knownTokens: ["token-3", "token-2"],
  mayBeNew: true,
};
const configMap = { group: "", kind: "ConfigMap" };
const deployment = { group: "apps", kind: "Deployment" };

function written(current: JsonObject | undefined, by: SyncClaim = claim): JsonObject {
  const decision = nextParent(current, by, { groupKinds: [configMap] });
  if (decision.kind !== "write") throw new Error(decision.message);
  return { ...decision.object, metadata: { ...decision.object.metadata, resourceVersion: "7", uid: "u" } };
}

/** The digests of earlier attempts that a parent remembers, newest last. */
function attemptedIn(parent: JsonObject | undefined): readonly string[] {
  return JSON.parse(stringAt(parent, "metadata", "annotations", "starling.dev/attempted") ?? "[]");
}

describe("the id and the name of a parent", () => {
  test("the id of a set is KEP-3659's hash of the parent", () => {
    // printf 'shop.web.app.starling-system.ConfigMap.' | openssl dgst -sha256 -binary | base64 | tr '+/' '-_' | tr -d =
    expect(setIdOf(claim)).toBe("applyset-u_otr-fHWNhE3H70kmFzhSmQQDqhaW2O8_iNw7QqH1k-v1");
  });

  test("the id of a set fits into a label", () => {
    expect(setIdOf(claim).length).toBeLessThanOrEqual(63);
  });

  test.each([
    ["shop", "web.app", "shop.web.app"],
    ["shop", "Web_App", /^shop-web-app-[0-9a-f]{16}$/],
    ["shop", "x".repeat(300), /^shop-x{175}-[0-9a-f]{16}$/],
    ["shop", "x".repeat(195), /^shop\.x{195}$/],
    ["shop", "x".repeat(196), /^shop-x{175}-[0-9a-f]{16}$/],
    ["s", "1", /^s\.1$/],
    ["shop", "a..b", /^shop-a-b-[0-9a-f]{16}$/],
    ["shop", "a.-b", /^shop-a-b-[0-9a-f]{16}$/],
    ["shop", "a-.b", /^shop-a-b-[0-9a-f]{16}$/],
    ["-shop", "web", /^shop-web-[0-9a-f]{16}$/],
    ["shop", "web-", /^shop-web-[0-9a-f]{16}$/],
    ["--shop", "we__b--", /^shop-we-b-[0-9a-f]{16}$/],
    ["_", "_", /^[0-9a-f]{16}$/],
  ])("the parent of %s/%s has a valid name", (syncNamespace, syncName, name) => {
    expect(parentName({ syncNamespace, syncName })).toMatch(name);
  });
});

test("two names that are cleaned to the same text have two parents", () => {
  const [one, other] = ["a_b", "a__b"].map((syncName) => parentName({ syncNamespace: "shop", syncName }));
  expect(one).not.toBe(other);
});

describe("nextParent", () => {
  test("a new parent can be read by other tools", () => {
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
      record: { attempt: 4, fence: 9, attempted: ["sha256:new"] },
    });
    expect(decision).not.toHaveProperty("object.metadata.resourceVersion");
  });

  test("a parent is written under the resourceVersion that was read, and keeps its kinds", () => {
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

  test("a parent remembers each attempted rendering once, until it is settled", () => {
    const first = written(undefined, { ...claim, renderDigest: "sha256:a" });
    const second = written(first, { ...claim, renderDigest: "sha256:b" });
    const third = written(second, { ...claim, renderDigest: "sha256:a" });
    expect(attemptedIn(third)).toEqual(["sha256:b", "sha256:a"]);
    const next = { ...claim, attempt: 5, renderDigest: "sha256:c" };
    expect(nextParent(third, next, { groupKinds: [deployment], settledThrough: 3 })).toMatchObject({
      record: { attempted: ["sha256:b", "sha256:a", "sha256:c"] },
    });
    expect(nextParent(third, next, { groupKinds: [deployment], settledThrough: 4 })).toMatchObject({
      object: { metadata: { annotations: { "applyset.kubernetes.io/contains-group-kinds": "Deployment.apps" } } },
      record: { attempted: ["sha256:c"] },
    });
  });

  test("a parent keeps renderings whose objects were not looked for, when others are settled", () => {
    const first = written(undefined, { ...claim, renderDigest: "sha256:a" });
    const second = written(first, { ...claim, renderDigest: "sha256:b" });
    const next = { ...claim, attempt: 5, renderDigest: "sha256:c" };
    const known = { groupKinds: [deployment], settledThrough: 4 };
    expect(nextParent(second, next, { ...known, unsettled: ["sha256:a"] })).toMatchObject({
      record: { attempted: ["sha256:a", "sha256:c"] },
    });
    expect(
      nextParent(second, { ...next, renderDigest: "sha256:a" }, { ...known, unsettled: ["sha256:a"] }),
    ).toMatchObject({
      record: { attempted: ["sha256:a"] },
    });
  });

  test("an attempt is not settled while no inventory was stored since", () => {
    const before = written(undefined, { ...claim, inventory: "sha256:1", renderDigest: "sha256:a" });
    const next = { ...claim, attempt: 5, renderDigest: "sha256:b" };
    const known = { groupKinds: [deployment], settledThrough: 4 };
    expect(nextParent(before, { ...next, inventory: "sha256:1" }, known)).toMatchObject({
      record: { attempted: ["sha256:a", "sha256:b"] },
    });
    expect(nextParent(before, { ...next, inventory: "sha256:2" }, known)).toMatchObject({
      record: { attempted: ["sha256:b"] },
    });
  });

  test("the memory of a parent is bounded", () => {
    let parent: JsonObject | undefined;
    for (let n = 0; n < 50; n += 1) parent = written(parent, { ...claim, renderDigest: `sha256:${n}` });
    expect(attemptedIn(parent)).toHaveLength(20);
    expect(attemptedIn(parent).at(-1)).toBe("sha256:49");
  });

  test("a parent names its owner and its assignment", () => {
    expect(written(undefined)).toMatchObject({
      metadata: {
        annotations: {
          "starling.dev/installation": "inst-1",
          "starling.dev/sync": "shop/web.app",
          "starling.dev/sync-uid": "uid-1",
          "starling.dev/attempt": "4",
          "starling.dev/fence": "9",
          "starling.dev/render-digest": "sha256:new",
          "starling.dev/attempted": '["sha256:new"]',
        },
      },
    });
  });

  test("the parent of a deletion names no rendering, and keeps the attempted ones", () => {
    const { renderDigest: _, ...deletion } = { ...claim, attempt: 5 };
    const decision = nextParent(written(undefined, { ...claim, renderDigest: "sha256:a" }), deletion, {
      groupKinds: [],
    });
    expect(decision).toMatchObject({ record: { attempt: 5, attempted: ["sha256:a"] } });
    expect(decision).not.toHaveProperty(["object", "metadata", "annotations", "starling.dev/render-digest"]);
  });

  test("the parent of a deletion without an earlier attempt remembers nothing", () => {
    const { renderDigest: _, ...deletion } = claim;
    expect(nextParent(undefined, deletion, { groupKinds: [] })).toMatchObject({ record: { attempted: [] } });
  });

  test("no attempt is settled while no inventory was ever stored", () => {
    const parent = written(undefined, { ...claim, attempt: 1, renderDigest: "sha256:a" });
    expect(nextParent(parent, claim, { groupKinds: [] })).toMatchObject({
      record: { attempted: ["sha256:a", "sha256:new"] },
    });
  });

  test("a parent that is being deleted is created anew, without its resourceVersion", () => {
    const parent = written(undefined);
    const going = { metadata: { ...(parent.metadata as JsonObject), deletionTimestamp: "2026-11-21T08:00:00Z" } };
    const decision = nextParent(going, claim, { groupKinds: [] });
    expect(decision).toMatchObject({ kind: "write", object: { metadata: { name: "shop.web.app" } } });
    expect(decision).not.toHaveProperty("object.metadata.resourceVersion");
  });

  test("a parent keeps labels of others", () => {
    const parent = written(undefined);
    const metadata = parent.metadata as { labels: JsonObject };
    const labelled = { metadata: { ...metadata, labels: { ...metadata.labels, team: "shop" } } };
    expect(nextParent(labelled, claim, { groupKinds: [] })).toMatchObject({
      object: { metadata: { labels: { team: "shop", "applyset.kubernetes.io/id": setIdOf(claim) } } },
    });
  });

  const edited = (annotations: JsonObject): JsonObject => {
    const metadata = written(undefined).metadata as { annotations: JsonObject };
    return { metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations } } };
  };

  test("a parent whose lists were removed counts as one without lists", () => {
    const metadata = written(undefined).metadata as { annotations: JsonObject };
    const taken = ["starling.dev/attempted", "applyset.kubernetes.io/contains-group-kinds"];
    const annotations = Object.fromEntries(
      Object.entries(metadata.annotations).filter(([name]) => !taken.includes(name)),
    );
    const decision = nextParent({ metadata: { ...metadata, annotations } }, claim, { groupKinds: [deployment] });
    expect(decision).toMatchObject({
      object: { metadata: { annotations: { "applyset.kubernetes.io/contains-group-kinds": "Deployment.apps" } } },
      record: { attempted: ["sha256:new"] },
    });
  });

  test.each([
    ["words", "soon"],
    ["nothing", ""],
    ["a fraction", "7.5"],
    ["more than can be counted", "99999999999999999999"],
    ["infinity", "Infinity"],
  ])("a fence of %s in a parent counts as none", (_name, fence) => {
    expect(nextParent(edited({ "starling.dev/fence": fence }), claim, { groupKinds: [] }).kind).toBe("write");
  });

  test.each([
    ["no list", '{"a":1}'],
    ["a text", '"sha256:aa"'],
    ["items that are not texts", '[1,null,{},["sha256:aa"]]'],
    ["no digests", '["sha256:","sha256:XY","aa","xsha256:aa","sha256:aa/b","sha512:aa"]'],
    ["a digest that is too long", JSON.stringify([`sha256:${"a".repeat(65)}`])],
  ])("a parent with %s in its memory names no blob", (_name, attempted) => {
    const decision = nextParent(edited({ "starling.dev/attempted": attempted }), claim, { groupKinds: [] });
    expect(decision).toMatchObject({ record: { attempted: ["sha256:new"] } });
  });

  test("a memory of too many digests is cut to the newest", () => {
    const many = Array.from({ length: 30 }, (_, index) => `sha256:${index}`);
    const { renderDigest: _, ...deletion } = claim;
    const parent = edited({ "starling.dev/attempted": JSON.stringify(many) });
    expect(nextParent(parent, deletion, { groupKinds: [] })).toMatchObject({ record: { attempted: many.slice(10) } });
  });

  test("kinds without a name are left out, and the others are sorted", () => {
    const parent = edited({ "applyset.kubernetes.io/contains-group-kinds": ",Secret,,Deployment.apps," });
    expect(nextParent(parent, claim, { groupKinds: [configMap] })).toMatchObject({
      object: {
        metadata: {
          annotations: { "applyset.kubernetes.io/contains-group-kinds": "ConfigMap,Deployment.apps,Secret" },
        },
      },
    });
  });

  test.each<readonly [string, Partial<SyncClaim>, string]>([
    ["another installation", { installationId: "inst-2" }, "ForeignOwner"],
    ["another Sync of the same name", { syncUid: "uid-2" }, "ForeignOwner"],
    ["a newer assignment", { attempt: 5, token: "token-5" }, "ClusterAhead"],
    ["a newer fence", { fence: 10 }, "ClusterAhead"],
    ["a number that no assignment of this installation can have", { attempt: 99 }, "ClusterAhead"],
    ["another installation with a known token", { installationId: "inst-2", token: "token-3" }, "ForeignOwner"],
    ["a newer assignment under an older fence", { attempt: 5, fence: 1, token: "token-5" }, "ClusterAhead"],
    ["the same number in other rows", { token: "token-4-of-others" }, "ClusterAhead"],
    ["an older number in other rows", { attempt: 1, fence: 1, token: "token-1-of-others" }, "ClusterAhead"],
  ])("a parent with the claim of %s is refused", (_name, theirs, reason) => {
    const decision = nextParent(written(undefined, { ...claim, ...theirs }), claim, { groupKinds: [configMap] });
    expect(decision).toMatchObject({ kind: "refuse", reason });
  });

  test.each<readonly [string, Partial<SyncClaim>]>([
    ["the same claim, after a crash", {}],
    ["an older assignment", { attempt: 3, fence: 99, token: "token-3" }],
    ["an assignment that a user accepted, of any installation", { installationId: "inst-2", token: "token-of-theirs" }],
    ["an older fence", { fence: 8 }],
  ])("a parent with the claim of %s is taken over", (_name, theirs) => {
    const ours = { ...claim, acceptedToken: "token-of-theirs" };
    expect(nextParent(written(undefined, { ...claim, ...theirs }), ours, { groupKinds: [configMap] }).kind).toBe(
      "write",
    );
  });

  test("a missing parent is refused if these rows have written it before", () => {
    expect(nextParent(undefined, { ...claim, mayBeNew: false }, { groupKinds: [] })).toMatchObject({
      reason: "ParentMissing",
      remembered: { attempt: 0, fence: 0 },
    });
  });

  test("a refusal has the parent's facts, as far as Starling may have written them", () => {
    const theirs = { attempt: 9, fence: 20, token: "token-9", inventory: `sha256:${"a".repeat(64)}` };
    const parent = written(undefined, { ...claim, ...theirs });
    expect(parentRefusal(parent, claim)?.remembered).toEqual({
      attempt: 9,
      fence: 20,
      token: "token-9",
      revision: "main@sha1:1",
      inventory: `sha256:${"a".repeat(64)}`,
    });
    const metadata = parent.metadata as { annotations: JsonObject };
    const annotations = {
      ...metadata.annotations,
      "starling.dev/inventory": "../../else",
      "starling.dev/token": "x y",
      "starling.dev/revision": "r\u001b[31m\n".repeat(400),
    };
    const remembered = parentRefusal({ metadata: { ...metadata, annotations } }, claim)?.remembered;
    expect(remembered).toMatchObject({ attempt: 9, fence: 20 });
    expect(remembered?.inventory).toBeUndefined();
    expect(remembered?.token).toBeUndefined();
    expect(remembered?.revision?.length).toBeLessThanOrEqual(300);
    expect(remembered?.revision).not.toContain("\n");
  });

  test("a parent of another tool is refused", () => {
    const theirs = {
      metadata: { name: "shop.web.app", annotations: { "applyset.kubernetes.io/tooling": "kubectl/v1.34" } },
    };
    expect(nextParent(theirs, claim, { groupKinds: [] })).toMatchObject({ kind: "refuse", reason: "ForeignOwner" });
  });

  test("a parent that another tool took over is refused, whatever else it says", () => {
    const decision = nextParent(edited({ "applyset.kubernetes.io/tooling": "kubectl/v1.34" }), claim, {
      groupKinds: [],
    });
    expect(decision).toMatchObject({
      reason: "ForeignOwner",
      message: expect.stringContaining(
        'does not belong to Starling according to the annotation applyset.kubernetes.io/tooling: its value is "kubectl/v1.34"',
      ),
    });
  });

  test("a ConfigMap that is not a parent is refused", () => {
    expect(nextParent({ metadata: { name: "shop.web.app" } }, claim, { groupKinds: [] })).toMatchObject({
      reason: "ForeignOwner",
      message: expect.stringContaining(
        "according to the annotation applyset.kubernetes.io/tooling: the annotation is missing; rename or delete the ConfigMap",
      ),
    });
  });

  test("a list that is not valid JSON counts as empty", () => {
    const parent = written(undefined);
    const metadata = parent.metadata as { annotations: JsonObject };
    const annotations = { ...metadata.annotations, "starling.dev/attempted": "not json" };
    const decision = nextParent({ metadata: { ...metadata, annotations } }, claim, { groupKinds: [] });
    expect(decision).toMatchObject({ record: { attempted: ["sha256:new"] } });
  });
});

test.each<readonly [string, Partial<SyncClaim>, boolean]>([
  ["itself", {}, true],
  ["an older fence", { fence: 8 }, false],
  ["a newer fence", { fence: 10 }, false],
  ["another attempt", { attempt: 5 }, false],
  ["another Sync", { syncUid: "uid-2" }, false],
  ["another installation", { installationId: "inst-2" }, false],
])("a parent holds the claim of %s: %s", (_name, change, held) => {
  expect(holdsClaim(written(undefined), { ...claim, ...change })).toBe(held);
});

test("a parent that is gone holds no claim", () => {
  expect(holdsClaim(undefined, claim)).toBe(false);
});
