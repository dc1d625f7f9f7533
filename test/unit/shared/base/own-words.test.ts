import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { otherCode } from "#shared/base/error-codes.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import { parseDocument } from "#shared/fleet/kinds/document.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

/** An error as Node and the SDK make it. */
function thrown(message: string, more: { readonly code?: string; readonly name?: string } = {}): Error {
  return Object.assign(new Error(message), more);
}

function caught(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

function answered(status: number, message: string): KubeError {
  const request = { method: "PATCH", path: "/apis/apps/v1/namespaces/shop/deployments/web", secret: false };
  return new KubeError(request, { status, message, causes: [] });
}

const fetchFailed = Object.assign(new TypeError("fetch failed"), {
  cause: thrown("getaddrinfo ENOTFOUND git.acme.invalid", { code: "ENOTFOUND" }),
});
const everyAddress = Object.assign(
  new AggregateError([thrown("connect ECONNREFUSED ::1:8443", { code: "ECONNREFUSED" })], ""),
  { code: "ECONNREFUSED" },
);
const denied =
  "User: arn:aws:sts::1:assumed-role/dev/ana is not authorized to perform: eks:ListClusters on resource: *";
const modified =
  'Operation cannot be fulfilled on deployments.apps "web": the object has been modified; please apply your changes to the latest version and try again';

/** The error of a library, the system or a server; the words before it; and whether the message keeps it in brackets. */
const said: readonly (readonly [unknown, string, "kept" | "left out"])[] = [
  [
    thrown("connect ECONNREFUSED 10.0.0.1:443", { code: "ECONNREFUSED" }),
    "no server listens at 10.0.0.1:443 (",
    "kept",
  ],
  [everyAddress, "no server listens at ::1:8443 (", "kept"],
  [fetchFailed, "no host has the name git.acme.invalid; check its spelling, and the DNS of this machine (", "left out"],
  [thrown("getaddrinfo EAI_AGAIN sts.eu-west-1", { code: "EAI_AGAIN" }), "the name sts.eu-west-1 cannot be", "kept"],
  [
    thrown("write EPIPE", { code: "EPIPE" }),
    "the other side closed the connection too early, before it had read everything",
    "kept",
  ],
  [thrown("read ECONNRESET", { code: "ECONNRESET" }), "the other side closed the connection too early (", "kept"],
  [thrown("socket hang up", { code: "ECONNRESET" }), "the other side closed the connection too early (", "kept"],
  [thrown("connect ETIMEDOUT 10.0.0.1:443", { code: "ETIMEDOUT" }), "10.0.0.1:443 did not answer in time (", "kept"],
  [
    thrown("self-signed certificate", { code: "DEPTH_ZERO_SELF_SIGNED_CERT" }),
    "the server's certificate comes from",
    "kept",
  ],
  [thrown("certificate has expired", { code: "CERT_HAS_EXPIRED" }), "the server's certificate has expired (", "kept"],
  [
    thrown("write EPROTO 0A:wrong version number", { code: "EPROTO" }),
    "the server does not answer with a supported version of TLS; check whether",
    "kept",
  ],
  [thrown("listen EADDRINUSE: address already in use 127.0.0.1:80", { code: "EADDRINUSE" }), "127.0.0.1:80 is", "kept"],
  [caught(() => readFileSync("/no/such")), "/no/such does not exist (", "kept"],
  [thrown("Token is expired", { name: "ExpiredTokenException" }), "the AWS credentials have expired; sign in", "kept"],
  [thrown("Rate exceeded", { name: "ThrottlingException" }), "AWS throttles the requests", "kept"],
  [
    thrown(denied, { name: "AccessDeniedException" }),
    "arn:aws:sts::1:assumed-role/dev/ana is not allowed to eks:List",
    "kept",
  ],
  [caught(() => JSON.parse('{"password": "hunter2"')), "the JSON is invalid in line 1, column 23", "left out"],
  [caught(() => JSON.parse('{"password": "hunter2')), "the JSON is incomplete: a brace, a bracket or", "left out"],
  [caught(() => JSON.parse("<html>hunter2")), "it is not JSON: no value may begin with <", "left out"],
  [
    answered(409, modified),
    "another writer changed the object at the same time; Starling reads it and tries again (",
    "kept",
  ],
  [answered(404, 'namespaces "shop" not found'), "Namespace shop does not exist; add it to the manifests", "kept"],
  [answered(500, "etcdserver: request timed out"), "the cluster's store (etcd) has a problem; Starling tries", "kept"],
  [
    answered(500, 'Internal error occurred: failed calling webhook "v.acme.io": connection refused'),
    "the webhook v.acme.io does not answer; check that its Pods run (",
    "kept",
  ],
  [
    answered(409, 'Apply failed with 1 conflict: conflict with "helm" using apps/v1: .spec.replicas'),
    "helm owns fields of the object and keeps them (",
    "kept",
  ],
];

test.each(said)("the error %s is reported as: %s", (error, words, raw) => {
  const message = errorMessage(error);
  expect(message.startsWith(words)).toBe(true);
  expect(message).not.toContain("hunter2");
  const own = error instanceof KubeError ? /\((.*)\)$/.exec(message)?.[1] : (error as Error).message;
  if (raw === "kept" && own !== "") expect(message).toContain(`(${own})`);
});

test.each([
  [
    "what Starling says itself",
    new StarlingError("the table is busy", { code: otherCode("ECONNRESET"), retry: "transient" }),
  ],
  ["a code without the system's text", thrown("no answer within 5000 ms", { code: "ETIMEDOUT" })],
  ["an unknown error", thrown("something odd")],
])("the message of %s is not changed", (_, error) => {
  expect(errorMessage(error)).toBe(error.message);
});

/** The file, and the message about it. */
const yaml: readonly (readonly [string, string])[] = [
  ["a: {b: 1\nc: 2\n", "f.yaml:2:1: unclosed { in line 1"],
  ["a:\n  b: 1\n   c: 2\n", "f.yaml:3:5: a key is not indented like its neighbours"],
  ["a:\n\tb: 1\n", "f.yaml:2:1: a line is indented with a tab"],
  ["a: @shop\n", "f.yaml:1:4: a text without quotes must not begin with @; put it in quotes"],
  ["a: *\n", "f.yaml:1:5: "],
  ["a: *.acme.io\n", "but no anchor of this name comes before it; put a text that begins with * in quotes"],
  ["a: 1\nb\nc: 2\n", 'f.yaml:3:2: a line without ":" is among lines that have one'],
  ['a: "\\d"\n', "a backslash in double quotes begins no escape that YAML knows"],
  ["- a\nb: 1\n", "a line belongs to nothing before it"],
];

test.each(yaml)("the YAML %j is refused with: %s", (text, words) => {
  expect(errorMessage(caught(() => parseDocuments(text, "f.yaml")))).toContain(words);
});

/** A duration as people write it, and the proposed one; undefined where Starling has no proposal. */
const durations: readonly (readonly [unknown, string | undefined])[] = [
  [10, "write 10s"],
  ["90", "write 90s"],
  ["1d", "write 24h"],
  ["5 min", "write 5m"],
  ["2 Hours", "write 2h"],
  ["soon", undefined],
  [5, undefined],
];

describe("a duration without its unit", () => {
  test.each(durations)("the duration %j is refused with the proposal %s", (interval, words) => {
    const parsed = parseDocument({
      apiVersion: "starling.dev/v1alpha1",
      kind: "Source",
      metadata: { name: "shop", namespace: "shop" },
      spec: { git: { url: "https://git.acme.io/shop" }, interval },
    });
    const [problem] = parsed.ok ? [] : parsed.problems;
    expect(problem).toMatchObject({ field: "spec.interval" });
    const suggested = /: (write \S+) \(got/.exec(problem?.message ?? "")?.[1];
    expect(suggested).toBe(words);
  });
});
