import { inspect, isDeepStrictEqual } from "node:util";
import { type ClusterConnection, type ClusterHost, startClusterHost } from "@starling/embedded-apiserver";
import { type ClusterAnswer, clusterRequest } from "@starling/embedded-apiserver/testing";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createRandom } from "#local/base/random.ts";
import { type KubeApiServer, startKubeApiServer } from "#local/clusters/kube-apiserver.ts";
import { isJsonObject, type Json, type JsonObject, parseJson } from "#shared/base/json.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import { gadgetDefinition, randomRequest } from "#test/contract/local/apiserver/random-requests.ts";
import { kubeAssets } from "#test/contract/targets.ts";
import { steadySeed } from "#test/support/run-seed.ts";

const namespaces = 40;
const requestsEach = 40;

const gadgets = "/apis/random.example.com/v1/namespaces/default/gadgets";
/** The server chooses these values. */
const ignored = new Set(["nodePort", "healthCheckNodePort"]);
/** Lists whose order varies: their times are whole seconds, or the server takes them from a map of Go. */
const unordered = new Set(["managedFields", "causes"]);

/** Removes from the answers of one server all values that another server may choose differently. */
class PlainAnswers {
  readonly #uids = new Map<string, string>();
  readonly #versions = new Map<string, string>();

  of({ status, headers, text }: ClusterAnswer): Json {
    const body = this.#plain(parseJson(text));
    return { status, warning: String(headers.warning), body };
  }

  #plain(value: Json, key = ""): Json {
    if (typeof value === "string") return this.#text(value, key);
    if (Array.isArray(value)) {
      // This cause prints the whole object, with its members in the order of the types in Go.
      const items = value.filter((item) => stringAt(item, "field") !== "patch").map((item) => this.#plain(item));
      return unordered.has(key) ? items.toSorted((left, right) => (printed(left) < printed(right) ? -1 : 1)) : items;
    }
    if (!isJsonObject(value)) return value;
    // The causes of a refusal contain its whole message.
    const isReported = isJsonObject(value.details) && value.details.causes !== undefined;
    const members = Object.entries(value).filter(([name]) => !ignored.has(name) && !(isReported && name === "message"));
    const plain = Object.fromEntries(members.map(([name, member]) => [name, this.#plain(member ?? null, name)]));
    return value.resourceVersion === undefined ? plain : { ...plain, resourceVersion: this.#version(value) };
  }

  #text(text: string, key: string): string {
    if (key !== "uid") return text.replaceAll(/10\.0\.\d+\.\d+/g, "IP").replaceAll(/\d{4}-\d\d-\d\dT[\d:]+Z/g, "TIME");
    if (!this.#uids.has(text)) this.#uids.set(text, `uid ${this.#uids.size}`);
    return this.#uids.get(text) ?? "";
  }

  /** Whether the object has changed since its last answer. */
  #version(metadata: JsonObject): string {
    const uid = stringAt(metadata, "uid");
    const version = stringAt(metadata, "resourceVersion") ?? "";
    if (uid === undefined) return "of a list";
    const before = this.#versions.get(uid);
    this.#versions.set(uid, version);
    return before === version ? "as before" : "moved";
  }
}

function printed(value: Json | undefined): string {
  return inspect(value, { depth: 9, sorted: true, breakLength: Number.POSITIVE_INFINITY });
}

function differences(real: Json | undefined, embedded: Json | undefined, path = ""): readonly string[] {
  if (isDeepStrictEqual(real, embedded)) return [];
  if (!isJsonObject(real) || !isJsonObject(embedded)) {
    return [`${path}: ${printed(real)} on a real server, ${printed(embedded)} here`];
  }
  const names = new Set([...Object.keys(real), ...Object.keys(embedded)]);
  return [...names].flatMap((name) => differences(real[name], embedded[name], `${path}.${name}`));
}

/** Without a real server only the replay of recorded answers compares the embedded server with one. */
describe.runIf(kubeAssets !== undefined)("random requests", () => {
  let real: KubeApiServer;
  let host: ClusterHost;
  let servers: readonly Pick<ClusterConnection, "server" | "caData" | "token">[];

  beforeAll(async () => {
    if (kubeAssets === undefined) return;
    real = await startKubeApiServer({ assets: kubeAssets });
    host = await startClusterHost({ controllers: "off" });
    servers = [real, host.addCluster("test")];
    for (const server of servers) {
      const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
      expect(await clusterRequest(server, { method: "POST", path, body: gadgetDefinition })).toMatchObject({
        status: 201,
      });
      await vi.waitFor(
        async () => expect(await clusterRequest(server, { path: gadgets })).toMatchObject({ status: 200 }),
        { timeout: 20_000, interval: 100 },
      );
    }
  });

  afterAll(async () => {
    await host?.stop();
    await real?.stop();
  });

  /** Sends requests in a namespace of their own until the servers answer differently. @returns that request and how. */
  async function firstDifference(seed: number, namespace: string): Promise<string | undefined> {
    const random = createRandom(seed);
    const answers = servers.map((server) => ({ server, plain: new PlainAnswers() }));
    for (const { server } of answers) {
      const body = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } };
      await clusterRequest(server, { method: "POST", path: "/api/v1/namespaces", body });
    }
    for (let index = 0; index < requestsEach; index += 1) {
      const request = randomRequest(random, namespace);
      const plainAnswers = answers.map(async ({ server, plain }) => plain.of(await clusterRequest(server, request)));
      const found = differences(...((await Promise.all(plainAnswers)) as [Json, Json]));
      const { method = "GET", path, body } = request;
      if (found.length > 0) return [`seed ${seed}: ${method} ${path}`, printed(body as Json), ...found].join("\n  ");
    }
    return undefined;
  }

  test("the embedded server answers random requests like a real one", async () => {
    const first = steadySeed(1);
    const found: string[] = [];
    for (let seed = first; seed < first + namespaces; seed += 1) {
      // If a second ends between the two answers, an apply is new on one server only. A real difference occurs again.
      const differs = (await firstDifference(seed, `random-${seed}`)) !== undefined;
      const again = differs ? await firstDifference(seed, `random-${seed}-again`) : undefined;
      if (again !== undefined) found.push(again);
    }
    expect(found.join("\n")).toBe("");
  }, 120_000);
});
