import { beforeEach, describe, expect, test } from "vitest";
import { KindCatalog } from "#shared/adapters/kube/kind-catalog.ts";
import type { Json } from "#shared/base/json.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

const at = new Date("2026-11-20T08:00:00Z").getTime();

function failure(status: number): KubeError {
  return new KubeError({ method: "GET", path: "/apis", secret: false }, { status, message: "no", causes: [] });
}

function resource(kind: string, verbs: readonly string[] = ["list"]): Json {
  return { resource: `${kind.toLowerCase()}s`, responseKind: { kind }, scope: "Namespaced", verbs };
}

/** The kinds by group and version; `null` for a version whose server does not answer. */
type Served = Readonly<Record<string, Readonly<Record<string, readonly Json[] | null>>>>;

const served: Served = {
  "": { v1: [resource("ConfigMap"), resource("Binding", ["create"])] },
  "example.com": {
    v2: [resource("Widget"), resource("Part", ["get"])],
    v1: [resource("Widget"), resource("Part"), resource("Old")],
  },
  "down.example.com": { v1: null, v2: [resource("Thing")] },
};

let now: number;
let asked: string[];
let answers: Map<string, Json | Error>;

function aggregated(): void {
  const items = (core: boolean): Json =>
    Object.entries(served)
      .filter(([group]) => (group === "") === core)
      .map(([group, versions]) => ({
        metadata: group === "" ? {} : { name: group },
        versions: Object.entries(versions).map(([version, resources]) =>
          resources === null ? { version, freshness: "Stale" } : { version, freshness: "Current", resources },
        ),
      }));
  answers.set("/api", { kind: "APIGroupDiscoveryList", items: items(true) });
  answers.set("/apis", { kind: "APIGroupDiscoveryList", items: items(false) });
}

function plain(): void {
  answers.set("/api", { kind: "APIVersions", versions: ["v1"] });
  const groups = Object.entries(served).flatMap(([name, versions]) =>
    name === "" ? [] : [{ name, versions: Object.keys(versions).map((version) => ({ version })) }],
  );
  answers.set("/apis", { kind: "APIGroupList", groups });
  for (const [group, versions] of Object.entries(served)) {
    for (const [version, resources] of Object.entries(versions)) {
      const groupVersion = group === "" ? version : `${group}/${version}`;
      const list = (resources ?? []).map((each) => {
        const { resource: name = null, responseKind, verbs = null } = each as Record<string, Json>;
        return { name, kind: (responseKind as { kind: string }).kind, namespaced: true, verbs };
      });
      const path = group === "" ? `/api/${version}` : `/apis/${groupVersion}`;
      answers.set(path, resources === null ? failure(503) : { kind: "APIResourceList", groupVersion, resources: list });
    }
  }
}

function catalogOf(): KindCatalog {
  return new KindCatalog(
    async (path, accept) => {
      asked.push(`${path} ${accept}`);
      const answer = answers.get(path) ?? failure(404);
      if (answer instanceof Error) throw answer;
      return answer;
    },
    { now: () => new Date(now) },
  );
}

function pathsAsked(): string[] {
  return asked.splice(0).map((each) => each.split(" ")[0] ?? "");
}

beforeEach(() => {
  now = at;
  asked = [];
  answers = new Map();
});

describe.each([
  ["aggregated", aggregated],
  ["plain", plain],
] as const)("a catalog of %s discovery", (form, serve) => {
  beforeEach(serve);

  test("a lookup finds a kind in the requested version, or in the first version that has it", async () => {
    const catalog = catalogOf();
    const widget = { group: "example.com", kind: "Widget" };
    expect(await catalog.lookup(widget)).toMatchObject({
      outcome: "found",
      info: { version: "v2", plural: "widgets" },
    });
    expect(await catalog.lookup({ ...widget, version: "v1" })).toMatchObject({ info: { version: "v1" } });
    expect(await catalog.lookup({ ...widget, kind: "Old" })).toMatchObject({ info: { version: "v1" } });
    expect(await catalog.lookup({ group: "", kind: "ConfigMap", version: "v1" })).toMatchObject({ outcome: "found" });
    expect(await catalog.lookup({ ...widget, version: "v3" })).toEqual({ outcome: "absent", served: ["v2", "v1"] });
    expect(await catalog.lookup({ ...widget, kind: "Old", version: "v2" })).toEqual({
      outcome: "absent",
      served: ["v1"],
    });
    expect(await catalog.lookup({ group: "other.com", kind: "Widget" })).toEqual({ outcome: "absent", served: [] });
  });

  test("the catalog knows every kind except those of a version that does not answer", async () => {
    const catalog = catalogOf();
    const thing = { group: "down.example.com", kind: "Thing" };
    expect(await catalog.lookup(thing)).toMatchObject({ outcome: "found", info: { version: "v2" } });
    expect(await catalog.lookup({ ...thing, kind: "Other", version: "v2" })).toEqual({ outcome: "absent", served: [] });
    for (const version of ["v1", undefined]) {
      const query = { group: thing.group, kind: "Other", ...(version === undefined ? {} : { version }) };
      expect(await catalog.lookup(query)).toEqual({
        outcome: "unavailable",
        message:
          "APIService v1.down.example.com is announced, but does not answer, so that Starling does not know Other",
      });
    }
    await expect(catalog.listableKinds()).rejects.toMatchObject({
      status: 503,
      reason: "ServiceUnavailable",
      message: "APIService v1.down.example.com is announced, but does not answer",
    });
  });

  test("discovery is read once, as long as every kind that is looked up exists", async () => {
    const catalog = catalogOf();
    const query = { group: "example.com", kind: "Widget" };
    await Promise.all([catalog.lookup(query), catalog.lookup(query)]);
    const first = form === "aggregated" ? ["/api", "/apis"] : ["/api", "/apis", "/apis/example.com/v2"];
    expect(pathsAsked()).toEqual(first);
    now += 60_000;
    await catalog.lookup(query);
    expect(pathsAsked()).toEqual([]);
    catalog.forget();
    await catalog.lookup(query);
    expect(pathsAsked()).toEqual(first);
  });

  test("discovery is read again for a missing kind, when it is older than a second", async () => {
    const catalog = catalogOf();
    const query = { group: "example.com", kind: "None" };
    const first =
      form === "aggregated" ? ["/api", "/apis"] : ["/api", "/apis", "/apis/example.com/v2", "/apis/example.com/v1"];
    await catalog.lookup(query);
    expect(pathsAsked()).toEqual(first);
    now += 1_000;
    await catalog.lookup(query);
    expect(pathsAsked()).toEqual([]);
    now += 1;
    await catalog.lookup(query);
    expect(pathsAsked()).toEqual(first);
    now += 1_000;
    await catalog.lookup(query);
    expect(pathsAsked()).toEqual([]);
  });

  test("the catalog says how many kinds it keeps", async () => {
    const catalog = catalogOf();
    expect(catalog.size).toBe(0);
    await catalog.listableKinds().catch(() => {});
    // Plain discovery asks for one version after another, and stops at the one that does not answer.
    expect(catalog.size).toBe(form === "aggregated" ? 8 : 7);
    catalog.forget();
    expect(catalog.size).toBe(0);
  });

  test("a failed discovery is read again by the next lookup", async () => {
    const catalog = catalogOf();
    const query = { group: "example.com", kind: "Widget" };
    for (const path of ["/api", "/apis", ...(form === "plain" ? ["/apis/example.com/v2"] : [])]) {
      const right = answers.get(path) ?? null;
      answers.set(path, failure(500));
      catalog.forget();
      await expect(catalog.lookup(query)).rejects.toMatchObject({ status: 500 });
      answers.set(path, right);
      expect(await catalog.lookup(query)).toMatchObject({ outcome: "found", info: { version: "v2" } });
    }
  });
});

test("each listable kind is listed once, in the first version that can be listed", async () => {
  aggregated();
  const document = answers.get("/apis") as { readonly items: readonly Json[] };
  answers.set("/apis", { ...document, items: document.items.slice(0, 1) });
  const kinds = await catalogOf().listableKinds();
  expect(kinds.map(({ group, version, kind }) => `${group}/${version} ${kind}`)).toEqual([
    "/v1 ConfigMap",
    "example.com/v2 Widget",
    "example.com/v1 Part",
    "example.com/v1 Old",
  ]);
});

test("the catalog asks for aggregated discovery in both its versions, and accepts a plain list", async () => {
  plain();
  await catalogOf().lookup({ group: "", kind: "ConfigMap" });
  const list = (version: string) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
  const accept = `${list("v2")},${list("v2beta1")},application/json`;
  expect(asked).toEqual([`/api ${accept}`, `/apis ${accept}`, "/api/v1 application/json"]);
});

test.each([404, 503])("a version whose list is answered with %i counts as not answering", async (status) => {
  plain();
  answers.set("/apis/example.com/v2", failure(status));
  const catalog = catalogOf();
  expect(await catalog.lookup({ group: "example.com", kind: "Widget" })).toMatchObject({ info: { version: "v1" } });
  expect(await catalog.lookup({ group: "example.com", kind: "None" })).toMatchObject({ outcome: "unavailable" });
});

test("a version whose list is refused or lost fails the lookup", async () => {
  plain();
  for (const error of [failure(403), new Error("lost")]) {
    answers.set("/apis/example.com/v2", error);
    await expect(catalogOf().lookup({ group: "example.com", kind: "Widget" })).rejects.toBe(error);
  }
});
