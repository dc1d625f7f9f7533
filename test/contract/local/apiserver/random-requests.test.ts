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
/** Chosen by the server. */
const ignored = new Set(["nodePort", "healthCheckNodePort"]);
/** In the order of their times, which are of seconds, or of a map of Go, which is none. */
const unordered = new Set(["managedFields", "causes"]);

/** An answer of one server, without what another may well answer otherwise. */
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
      // The whole object, whose members Go prints in the order of its types.
      const items = value.filter((item) => stringAt(item, "field") !== "patch").map((item) => this.#plain(item));
      return unordered.has(key) ? items.toSorted((left, right) => (printed(left) < printed(right) ? -1 : 1)) : items;
    }
    if (!isJsonObject(value)) return value;
    // The causes of a refusal say all that its message says.
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

  /** Whether the object is another one than it was when it was seen last. */
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

/** Where there is no real server, recorded answers are all that there is to go by. */
describe.runIf(kubeAssets !== undefined)("requests at random", () => {
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

  /** The first request in a namespace of its own that is answered otherwise, and how. */
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

  test("are answered by the embedded server as by a real one", async () => {
    const first = steadySeed(1);
    const found: string[] = [];
    for (let seed = first; seed < first + namespaces; seed += 1) {
      // A second that ends between the two answers makes an apply new on one server only: what differs does so again.
      const differs = (await firstDifference(seed, `random-${seed}`)) !== undefined;
      const again = differs ? await firstDifference(seed, `random-${seed}-again`) : undefined;
      if (again !== undefined) found.push(again);
    }
    expect(found.join("\n")).toBe("");
  }, 120_000);
});
