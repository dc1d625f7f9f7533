import { expect, test } from "vitest";
import {
  issueToken,
  serviceAccountIssuer,
  serviceAccountOfToken,
} from "#apiserver/authorization/service-account-tokens.ts";
import { Cluster } from "#apiserver/cluster.ts";
import type { JsonObject } from "#apiserver/json.ts";

const issuedAt = Date.parse("2026-01-01T00:00:00Z") / 1000;
const expiresAt = issuedAt + 600;

function account(uid: string): JsonObject {
  return { apiVersion: "v1", kind: "ServiceAccount", metadata: { namespace: "a", name: "robot", uid } };
}

/** A cluster with one account, at a time in seconds after the token of the tests was issued. */
function clusterAt(seconds: number, { token = "secret", uid = "1" } = {}): Cluster {
  const clock = () => (issuedAt + seconds) * 1000;
  const cluster = new Cluster({
    name: "c",
    uid: "u",
    token,
    version: "v1.36.2",
    clock,
    caCert: "",
    controllers: "off",
  });
  cluster.store.put("/serviceaccounts", account(uid));
  return cluster;
}

function issued(audiences: readonly string[] = [serviceAccountIssuer]): string {
  return issueToken(clusterAt(0), account("1"), { audiences, issuedAt, expiresAt });
}

test("a token names the account and its groups until it expires", () => {
  const token = issued();
  expect(serviceAccountOfToken(clusterAt(599), token)).toMatchObject({
    username: "system:serviceaccount:a:robot",
    uid: "1",
    groups: ["system:serviceaccounts", "system:serviceaccounts:a"],
  });
  expect(serviceAccountOfToken(clusterAt(600), token)).toBeUndefined();
});

test.each([
  ["from another cluster", clusterAt(0, { token: "other" }), issued()],
  ["for an account that was deleted and created again", clusterAt(0, { uid: "2" }), issued()],
  ["for another audience", clusterAt(0), issued(["vault"])],
  ["with a changed payload", clusterAt(0), issued().replace(/\.[^.]+\./, (payload) => `${payload.slice(0, -2)}A.`)],
  ["without a signature", clusterAt(0), issued().replace(/[^.]+$/, "")],
  ["that is not a JSON web token", clusterAt(0), "secret"],
])("a token %s belongs to no account", (_what, cluster, token) => {
  expect(serviceAccountOfToken(cluster, token)).toBeUndefined();
});
