/** Sends recorded requests to a server and compares its answers with the recorded ones, by the rules of the recording. */

import type { ClusterConnection } from "@starling/embedded-apiserver";
import { type ClusterAnswer, clusterRequest } from "@starling/embedded-apiserver/testing";
import { defined } from "#shared/base/defined.ts";
import { isJsonObject, type Json, parseJson, stringifyJson } from "#shared/base/json.ts";
import { stringAt, valueAt } from "#shared/kube/kube-object.ts";
import { Bindings, differences } from "#test/contract/local/apiserver/recorded-differences.ts";
import type { VectorStep } from "#test/contract/local/apiserver/vector-file.ts";

/** Expands a body that the recording only describes. */
function expand(body: string): string {
  const operations = /^<a JSON array of (\d+) times (.*)>$/.exec(body);
  if (operations !== null) return `[${Array(Number(operations[1])).fill(operations[2]).join()}]`;
  return body.replaceAll(
    /<(\d+) times (.) then \1 times (.)>/g,
    (_all, count: string, open: string, close: string) => open.repeat(Number(count)) + close.repeat(Number(count)),
  );
}

/** A server to replay on, and the token of each user that the recording names; null sends none. */
export interface ReplayServer {
  readonly connection: Pick<ClusterConnection, "server" | "caData" | "token">;
  readonly tokens: Readonly<Record<string, string | null>>;
}

function send({ connection, tokens }: ReplayServer, step: VectorStep, bindings: Bindings): Promise<ClusterAnswer> {
  const { method = "GET", path = "/", headers = {}, body } = step.request ?? {};
  const text = typeof body === "string" ? expand(body) : stringifyJson(body);
  const token = tokens[step.as ?? "admin"];
  return clusterRequest(connection, {
    method,
    path: bindings.fill(path),
    headers: { "user-agent": "vectors/1.0", ...headers },
    ...(body === undefined ? {} : { body: bindings.fill(text) }),
    ...defined({ token }),
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

/** Whether the recorded body was reduced. Then only its remaining parts are compared, and lists by name. */
function isPartial(file: string, step: VectorStep): boolean {
  return file.startsWith("01-") || /reduced/.test(`${step.note ?? ""}${step.name}`);
}

/** Whether only a part of the answer is compared. */
export function isLoose(file: string, step: VectorStep): boolean {
  return isPartial(file, step) || (step.loose ?? []).length > 0;
}

interface Context {
  readonly bindings: Bindings;
  readonly partial: boolean;
}

function compare(step: VectorStep, answer: ClusterAnswer, { bindings, partial }: Context): string[] {
  const { response } = step;
  if (response === undefined) return [];
  const actual =
    isJsonObject(response.body) && answer.text.startsWith("{") ? parseJson(answer.text) : bodyOf(answer, response.body);
  const loose = new Set(step.loose ?? []);
  const ignore = new Set<string>();
  if (loose.has("message")) ignore.add(".message");
  if (loose.has("managedFields")) ignore.add(".metadata.managedFields");
  const mayStay = loose.has("resourceVersion: not moving is fine too");
  const mayMove = loose.has("resourceVersion: moving is fine too");
  if (isList(response.body) || mayStay || mayMove) {
    ignore.add(".metadata.resourceVersion");
    const placeholder = stringAt(response.body, "metadata", "resourceVersion");
    const version = stringAt(actual, "metadata", "resourceVersion");
    if (mayStay) bindings.take(placeholder, version);
    else if (mayMove) bindings.move(placeholder, version);
    else bindings.assume(placeholder, version);
  }
  for (const [index, event] of Array.isArray(response.body) ? response.body.entries() : []) {
    if (stringAt(event, "type") === "BOOKMARK") ignore.add(`[${index}].object.metadata.resourceVersion`);
  }
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

/** The namespace controller tries again after 5 s or more when it could not delete something. */
const pollDeadlineMs = 20_000;

/** The replay of one file, with the values that its placeholders stand for so far. */
export class Replay {
  readonly #file: string;
  readonly #server: ReplayServer;
  #bindings: Bindings;

  constructor(file: string, server: ReplayServer, order: "strict" | "any") {
    this.#file = file;
    this.#server = server;
    this.#bindings = new Bindings(order);
  }

  /** Sends a step, and the steps that belong in it while its request is open. @returns all differences from the recording. */
  async play(step: VectorStep): Promise<readonly string[]> {
    const deadline = Date.now() + pollDeadlineMs;
    for (;;) {
      const answering = send(this.#server, step, this.#bindings);
      const problems: string[] = [];
      for (const inner of step.during ?? []) problems.push(...(await this.play(inner)));
      const answer = await answering;
      const tried = this.#bindings.copy();
      problems.push(...compare(step, answer, { bindings: tried, partial: isPartial(this.#file, step) }));
      if (problems.length === 0 || step.poll !== true || Date.now() > deadline) {
        this.#bindings = tried;
        return problems;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
