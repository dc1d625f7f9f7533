import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Authenticator,
  type ClusterConnection,
  type ClusterHost,
  startClusterHost,
} from "#local/cluster/cluster-host.ts";
import { isJsonObject, type Json, parseJson, stringifyJson } from "#shared/domain/json.ts";
import { stringAt, valueAt } from "#shared/domain/kube-object.ts";
import { leftOutSteps } from "#test/contract/local/cluster/left-out-steps.ts";
import { Bindings, differences } from "#test/contract/local/cluster/unify.ts";
import { readVectorFile, type VectorStep } from "#test/contract/local/cluster/vector-file.ts";
import { type ClusterAnswer, clusterRequest } from "#test/support/cluster-request.ts";

/** Replays what a real kube-apiserver 1.36.2 answered. Every step is sent, so that the next finds what it needs. */

/** Bodies that the recording describes instead of holding them. */
function expand(body: string): string {
  const operations = /^<a JSON array of (\d+) times (.*)>$/.exec(body);
  if (operations !== null) return `[${Array(Number(operations[1])).fill(operations[2]).join()}]`;
  return body.replaceAll(
    /<(\d+) times (.) then \1 times (.)>/g,
    (_all, count: string, open: string, close: string) => open.repeat(Number(count)) + close.repeat(Number(count)),
  );
}

/** What her certificate adds under `extra` was left out of the recording. */
const authenticator: Authenticator = async (token) =>
  token === "alice" ? { username: "alice", groups: ["dev"], extra: {} } : undefined;

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

describe.each(Object.entries(leftOutSteps))("%s", (file, leftOut) => {
  const bindings = { current: new Bindings(), trimmed: file.startsWith("01-") };
  let host: ClusterHost;
  let connection: ClusterConnection;
  beforeAll(async () => {
    host = await startClusterHost({
      authenticator,
      controllers: file.startsWith("21-") ? "on" : "off",
      readyAfterMs: 3_600_000,
    });
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
