import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ClusterConnection, type ClusterHost, startClusterHost } from "#local/cluster/cluster-host.ts";
import { isJsonObject, type Json, parseJson, stringifyJson } from "#shared/domain/json.ts";
import { stringAt, valueAt } from "#shared/domain/kube-object.ts";
import { Bindings, differences } from "#test/contract/local/cluster/unify.ts";
import { readVectorFile, type VectorStep } from "#test/contract/local/cluster/vector-file.ts";
import { type ClusterAnswer, clusterRequest } from "#test/support/cluster-request.ts";

/**
 * Replays what a real kube-apiserver 1.36.2 answered. Every step is sent, so that the next finds what it needs; a step
 * that is left out is not compared, and says why.
 */
const files: Readonly<Record<string, Readonly<Record<number, string>>>> = {
  "01-discovery.json": {},
  "02-create-read-delete.json": {},
  "03-apply-basics.json": { 39: "words of Go's YAML decoder" },
  "04-apply-conflicts.json": {},
  "05-apply-lists-deployment.json": {},
  "06-apply-service.json": {},
  "07-status-and-scale.json": {},
  "08-generation-and-versions.json": {},
  "09-patches.json": {
    9: "the message holds the object in Go's order of members",
    13: "the message holds the object in Go's order of members",
    15: "the message holds the object in Go's order of members",
  },
  "10-lists.json": {},
  "11-watch.json": {
    22: "the resourceVersion in the request is garbled",
    25: "the resourceVersion in the request is garbled",
    26: "the resourceVersion in the request is garbled",
    27: "no list is kept of an older version",
  },
  "12-namespaces.json": {},
  "13-finalizers-and-deletion.json": {},
  "14-owner-references.json": { 18: "needs RBAC", 19: "needs RBAC" },
  "15-custom-resources.json": {
    29: "rules (CEL) are not evaluated",
    39: "rules (CEL) are not evaluated",
    58: "the path in the message and the scale accessor",
    62: "counts the object that step 29 should have refused",
    63: "counts the object that step 29 should have refused",
    71: "the resourceVersion in the request is a literal",
  },
  "16-immutable-fields.json": {
    12: "a second write of an unchanged Job, by which nothing visible changes",
    14: "the message holds the template as a Go struct",
  },
  "17-validation.json": {},
  "19-limits.json": {},
  "20-applyset.json": {
    5: "a second IP family that nobody asked for",
    13: "a second IP family that nobody asked for",
    16: "a second IP family that nobody asked for",
  },
  "21-with-controllers.json": {
    8: "Pods without the volumes of the ServiceAccount admission",
    11: "events.k8s.io is not served",
    13: "the order of ReplicaSets by their hashes",
    19: "recorded before the controller had written the status",
    25: "an item reduced to its owner",
  },
  "22-kubectl.json": {
    27: "lists what was created in protobuf",
    39: "recorded before the status was set",
    40: "recorded before the status was set",
    57: "deletes what was created in protobuf",
  },
};

/** Bodies that the recording describes instead of holding them. */
function expand(body: string): string {
  const operations = /^<a JSON array of (\d+) times (.*)>$/.exec(body);
  if (operations !== null) return `[${Array(Number(operations[1])).fill(operations[2]).join()}]`;
  return body.replaceAll(
    /<(\d+) times (.) then \1 times (.)>/g,
    (_all, count: string, open: string, close: string) => open.repeat(Number(count)) + close.repeat(Number(count)),
  );
}

const tokens: Readonly<Record<string, string | null>> = { "bad-token": "not-a-token", anonymous: null, alice: "alice" };

function send(connection: ClusterConnection, step: VectorStep, bindings: Bindings): Promise<ClusterAnswer> {
  const { method = "GET", path = "/", headers = {}, body } = step.request ?? {};
  const text = typeof body === "string" ? expand(body) : stringifyJson(body);
  const token = tokens[step.as ?? "admin"];
  return clusterRequest(connection, {
    method,
    path: bindings.fill(path),
    headers: { "user-agent": "vectors/1.0", ...headers },
    ...(body === undefined ? {} : { body: bindings.fill(text) }),
    ...(token === undefined ? {} : { token }),
  });
}

function bodyOf(answer: ClusterAnswer, expected: Json | undefined): Json {
  // A watch is recorded as the list of its events.
  if (Array.isArray(expected)) {
    const lines = answer.text.split("\n").filter((line) => line !== "");
    const events = lines.map((line) => parseJson(line));
    return typeof expected[0] === "string" ? events.map((event) => valueAt(event, "type") ?? null) : events;
  }
  return String(answer.headers["content-type"]).includes("json") ? parseJson(answer.text) : answer.text;
}

function isList(body: Json | undefined): boolean {
  return isJsonObject(body) && (Array.isArray(body.items) || body.kind === "Table");
}

interface Context {
  readonly bindings: Bindings;
  /** Discovery documents are trimmed: what was kept is compared by name. */
  readonly trimmed: boolean;
}

function compare(step: VectorStep, answer: ClusterAnswer, { bindings, trimmed }: Context): string[] {
  const { response } = step;
  if (response === undefined) return [];
  const actual =
    isJsonObject(response.body) && answer.text.startsWith("{") ? parseJson(answer.text) : bodyOf(answer, response.body);
  const loose = new Set(step.loose ?? []);
  const ignore = new Set<string>();
  if (loose.has("message")) ignore.add(".message");
  if (loose.has("managedFields")) ignore.add(".metadata.managedFields");
  if (isList(response.body)) {
    ignore.add(".metadata.resourceVersion");
    bindings.assume(
      stringAt(response.body, "metadata", "resourceVersion"),
      stringAt(actual, "metadata", "resourceVersion"),
    );
  }
  const partial = /reduced/.test(`${step.note ?? ""}${step.name}`) || trimmed;
  const problems =
    answer.status === response.status
      ? []
      : [`status: expected ${response.status}, got ${answer.status}: ${answer.text.slice(0, 600)}`];
  for (const name of ["content-type", "warning", "retry-after", "www-authenticate"]) {
    const expected = response.headers?.[name];
    const got = answer.headers[name];
    if (expected !== undefined || name !== "content-type") {
      if (String(expected ?? "") !== String(got ?? ""))
        problems.push(`${name}: expected ${String(expected)}, got ${String(got)}`);
    }
  }
  return [...problems, ...differences(response.body, actual, { bindings, partial, ignore })];
}

const pollDeadlineMs = 5_000;

async function play(
  connection: ClusterConnection,
  step: VectorStep,
  bindings: { current: Bindings; readonly trimmed: boolean },
): Promise<string[]> {
  const deadline = Date.now() + pollDeadlineMs;
  for (;;) {
    const answering = send(connection, step, bindings.current);
    for (const inner of step.during ?? []) await play(connection, inner, bindings);
    const answer = await answering;
    const tried = bindings.current.copy();
    const problems = compare(step, answer, { bindings: tried, trimmed: bindings.trimmed });
    if (problems.length === 0 || step.poll !== true || Date.now() > deadline) {
      bindings.current = tried;
      return problems;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe.each(Object.entries(files))("%s", (file, leftOut) => {
  const bindings = { current: new Bindings(), trimmed: file.startsWith("01-") };
  let host: ClusterHost;
  let connection: ClusterConnection;
  beforeAll(async () => {
    host = await startClusterHost({ controllers: file.startsWith("21-") ? "on" : "off", readyAfterMs: 3_600_000 });
    connection = host.addCluster("vectors");
  });
  afterAll(() => host.stop());

  for (const [index, step] of readVectorFile(file).entries()) {
    const reason = leftOut[index];
    if (step.request === undefined) continue;
    test(`${index} ${step.name}${reason === undefined ? "" : ` (left out: ${reason})`}`, async () => {
      const problems = await play(connection, reason === undefined ? step : { ...step, poll: false }, bindings);
      if (reason === undefined) expect(problems, problems.join("\n")).toEqual([]);
    });
  }
});
