import { expect, test } from "vitest";
import { parseJson } from "#apiserver/json.ts";
import { protobufToJson } from "#apiserver/operations/protobuf.ts";

/** Bodies that kubectl 1.36.2 sent. Go writes the zero of every field that is not a pointer. */
const bodies = {
  configMap: "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEhsKEQoBZBIAGgAiACoAMgA4AEIAEgYKAWsSATEaACIA",
  deployment:
    "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50EqcBChsKAXcSABoAIgAqADIAOABCAFoICgNhcHASAXcSeggCEgoKCAoDYXBwEgF3GmIKGgoAEgAaACIAKgAyADgAQgBaCAoDYXBwEgF3EkQSJgoBaRIBaSoAMgoKABAAGFAiACoAQgBqAHIAgAEAiAEAkAEAogEAGgAyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIBACICCgAoADgAGgwIABAAGAAgACgAOAAaACIA",
  budget:
    "azhzAAogCglwb2xpY3kvdjESE1BvZERpc3J1cHRpb25CdWRnZXQSNgoRCgFwEgAaACIAKgAyADgAQgASFQoJCAEQABoDNTAlEggKBgoBYRIBYhoKCAAYACAAKAAwABoAIgA=",
  quota: "azhzAAoTCgJ2MRINUmVzb3VyY2VRdW90YRIkChEKAXESABoAIgAqADIAOABCABINCgsKBHBvZHMSAwoBMxoAGgAiAA==",
  secret: "azhzAAoMCgJ2MRIGU2VjcmV0EiQKEQoBcxIAGgAiACoAMgA4AEIAEgYKAWESAWISBQoBYxIAGgAaACIA",
  tokenRequest:
    "azhzAAooChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESDFRva2VuUmVxdWVzdBIdChAKABIAGgAiACoAMgA4AEIAEgMg2AQaBAoAEgAaACIA",
};

function read(body: string) {
  return parseJson(protobufToJson(Buffer.from(body, "base64")) ?? "null");
}

test.each([
  ["configMap", { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "d" }, data: { k: "1" } }],
  [
    "deployment",
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "w", labels: { app: "w" } },
      spec: {
        replicas: 2,
        selector: { matchLabels: { app: "w" } },
        template: {
          metadata: { labels: { app: "w" } },
          spec: { containers: [{ name: "i", image: "i", ports: [{ containerPort: 80 }] }] },
        },
      },
    },
  ],
  ["budget", { metadata: { name: "p" }, spec: { minAvailable: "50%", selector: { matchLabels: { a: "b" } } } }],
  ["quota", { kind: "ResourceQuota", spec: { hard: { pods: "3" } } }],
  ["secret", { kind: "Secret", data: { a: "Yg==", c: "" } }],
  ["tokenRequest", { apiVersion: "authentication.k8s.io/v1", spec: { expirationSeconds: 600 } }],
] as const)("the protobuf of kubectl's %s is read as the same JSON", (name, object) => {
  expect(read(bodies[name])).toMatchObject(object);
});

test("a zero time in protobuf is left out of the JSON", () => {
  expect(read(bodies.configMap)).not.toHaveProperty("metadata.creationTimestamp");
});

test.each([
  ["a body without an envelope", Buffer.from("{}")],
  ["an envelope that is cut off", Buffer.from(bodies.deployment, "base64").subarray(0, 60)],
  ["an unknown kind", Buffer.from("azhzAAoKCgJ2MRIETm9wZRIAGgAiAA==", "base64")],
])("the protobuf reader returns undefined for %s", (_name, body) => {
  expect(protobufToJson(body)).toBeUndefined();
});
