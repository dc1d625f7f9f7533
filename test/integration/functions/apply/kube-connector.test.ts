import { EKSClient } from "@aws-sdk/client-eks";
import { STSClient } from "@aws-sdk/client-sts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { KubeConnector } from "#functions/apply/kube-connector.ts";
import { EksAccess } from "#shared/adapters/eks-access.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { keys } from "#shared/domain/rows/keys.ts";
import type { ClusterRow } from "#shared/domain/rows/object-rows.ts";
import { type RecordingServer, startRecordingServer } from "#test/support/recording-server.ts";

const namespaces = {
  group: "",
  version: "v1",
  kind: "Namespace",
  plural: "namespaces",
  namespaced: false,
  verbs: ["get"],
  hasStatus: true,
};

let server: RecordingServer;
beforeAll(async () => {
  server = await startRecordingServer(() => ({ body: { metadata: { name: "kube-system", uid: "1" } } }));
});
afterAll(() => server.close());

function clusterRow(): ClusterRow {
  return {
    ...keys.cluster("c1"),
    type: "Cluster",
    schema: 1,
    version: 1,
    uid: "uid-c1",
    name: "c1",
    labels: {},
    annotations: {},
    generation: 1,
    createdAt: "2026-11-20T08:00:00.000Z",
    spec: { endpoint: { server: server.url, caData: server.caData, token: { secret: "starling/clusters/c1" } } },
    operations: {},
    status: { conditions: [] },
  };
}

const noEks = new EksAccess({
  sts: () => new STSClient({ region: "eu-west-1" }),
  eks: () => new EKSClient({ region: "eu-west-1" }),
  clock: systemClock,
  installation: "test",
});

function clientWith(token: string) {
  const connector = new KubeConnector({ secrets: { read: async () => token }, eks: noEks, clock: systemClock });
  return connector.connect(clusterRow(), new Date(Date.now() + 60_000));
}

test("a token that was stored with a line end is used without it", async () => {
  const client = await clientWith("header.payload.signature\n");
  await client.get(namespaces, { namespace: "", name: "kube-system" });
  expect(server.requests.at(-1)?.headers.authorization).toBe("Bearer header.payload.signature");
});

test.each([
  ["is empty", ""],
  ["holds something else", '{"token": "header.payload.signature"}'],
])("a secret that %s is named, and not shown", async (_what, text) => {
  const client = await clientWith(text);
  const asked = client.get(namespaces, { namespace: "", name: "kube-system" });
  await expect(asked).rejects.toMatchObject({
    code: "InvalidCredentials",
    message:
      "secret starling/clusters/c1 does not hold what spec.endpoint.token says: expected the token itself, and nothing else",
  });
});
