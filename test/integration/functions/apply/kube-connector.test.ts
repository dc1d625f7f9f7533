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

function clientWith(token: string, more: { readonly server?: string; readonly caData?: string } = {}) {
  const connector = new KubeConnector({ secrets: { read: async () => token }, eks: noEks, clock: systemClock });
  const endpoint = { server: server.url, caData: server.caData, token: { secret: "starling/clusters/c1" }, ...more };
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

test.each([
  ["https://169.254.169.254"],
  ["https://0xa9fea9fe"],
  ["https://[::ffff:169.254.169.254]"],
  ["https://[fd00:ec2::254]"],
  ["https://[64:ff9b::a9fe:a9fe]"],
  ["https://0.0.0.0"],
])("a cluster at %s is refused before anything is sent", async (server) => {
  const client = await clientWith("header.payload.signature", { server });
  await expect(clusterUidOf(client)).rejects.toMatchObject({
    code: "AddressRefused",
    message: expect.stringMatching(/ is not reached: .* is a link-local or reserved address; correct the URL$/),
  });
});

/** Rows may be older than the schema that refuses these. */
test.each([
  ["", "is empty, which would trust the public authorities"],
  [" ", "is empty"],
  ["bm9uZQ==", "holds no PEM certificate"],
])("an authority %j never becomes the public ones", async (caData, expected) => {
  await expect(clientWith("header.payload.signature", { caData })).rejects.toMatchObject({
    code: "InvalidAuthority",
    message: expect.stringContaining(`the certificate authority of ${server.url} (caData) ${expected}`),
  });
});
