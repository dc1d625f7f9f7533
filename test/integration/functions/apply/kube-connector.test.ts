import { EKSClient } from "@aws-sdk/client-eks";
import { STSClient } from "@aws-sdk/client-sts";
import { expect, test } from "vitest";
import { clusterUidOf } from "#functions/apply/engine/cluster-uid.ts";
import { KubeConnector } from "#functions/apply/kube-connector.ts";
import { EksAccess } from "#shared/adapters/eks-access.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { startRecordingServer } from "#test/support/recording-server.ts";

const server = forAllTests(() =>
  startRecordingServer(() => ({ body: { metadata: { name: "kube-system", uid: "1" } } })),
);

const noEks = new EksAccess({
  sts: () => new STSClient({ region: "eu-west-1" }),
  eks: () => new EKSClient({ region: "eu-west-1" }),
  clock: systemClock,
  installation: "test",
});

function clientWith(token: string) {
  const connector = new KubeConnector({ secrets: { read: async () => token }, eks: noEks, clock: systemClock });
  const endpoint = { server: server.url, caData: server.caData, token: { secret: "starling/clusters/c1" } };
  return connector.connect(clusterRow({ endpoint }), new Date(Date.now() + 60_000));
}

test("a token that was stored with a line end is used without it", async () => {
  const client = await clientWith("header.payload.signature\n");
  await clusterUidOf(client);
  expect(server.requests.at(-1)?.headers.authorization).toBe("Bearer header.payload.signature");
});

test.each([
  ["is empty", ""],
  ["holds something else", '{"token": "header.payload.signature"}'],
])("a secret that %s is named, and not shown", async (_what, text) => {
  const client = await clientWith(text);
  const asked = clusterUidOf(client);
  await expect(asked).rejects.toMatchObject({
    code: "InvalidCredentials",
    message:
      "secret starling/clusters/c1 does not hold what spec.endpoint.token says: expected the token itself, and nothing else",
  });
});
