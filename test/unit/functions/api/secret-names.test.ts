/** Names of secrets that no role of the installation may read. */
import { beforeEach, describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { type ApiFixture, apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const apiVersion = "starling.dev/v1alpha1";
const metadata = { name: "shop", namespace: "shop" };
const source = (secret: string, interval = "5m") => ({
  apiVersion,
  kind: "Source",
  metadata,
  spec: {
    oci: { url: "oci://ghcr.io/acme/shop", credentials: { secret, kind: "basic" } },
    interval,
  },
});
const receiver = (...secrets: readonly string[]) => ({
  apiVersion,
  kind: "Receiver",
  metadata,
  spec: { provider: "github", sources: ["shop"], secrets },
});
const cluster = (secret: string) => ({
  apiVersion,
  kind: "Cluster",
  metadata: { name: "c1" },
  spec: { endpoint: { server: "https://c1.example.com", token: { secret } } },
});
const arn = (name: string, account = "111122223333", region = "eu-west-1") =>
  `arn:aws:secretsmanager:${region}:${account}:secret:${name}-AbCdEf`;

let api: ApiFixture;
beforeEach(() => {
  api = apiFixture();
});
const apply = (document: object, dryRun = false) => api.call("POST", "/v1/apply", { documents: [document], dryRun });
const problemsOf = async (document: object) => (await apply(document)).body.problems;

describe("a secret that Starling could not read is refused before anything is written", () => {
  test.each([
    [
      "a Source of another folder",
      source("starling/registry"),
      "spec.oci.credentials.secret",
      "is starling/registry, which is not below starling/git/, and Starling reads no other secret for a Source; write the name of one there, such as starling/git/shop",
    ],
    [
      "a Source of another installation, whose name could be the secret itself",
      source("other/git/shop"),
      "spec.oci.credentials.secret",
      "is not below starling/git/, and Starling reads no other secret for a Source; write the name of one there, such as starling/git/shop",
    ],
    [
      "a second secret of a Receiver",
      receiver("starling/hooks/shop", "old/hooks/shop"),
      "spec.secrets[1]",
      "is not below starling/hooks/, and Starling reads no other secret for a Receiver; write the name of one there, such as starling/hooks/shop",
    ],
    [
      "a Cluster",
      cluster("starling/git/c1"),
      "spec.endpoint.token.secret",
      "is starling/git/c1, which is not below starling/clusters/, and Starling reads no other secret for a Cluster; write the name of one there, such as starling/clusters/shop",
    ],
    [
      "an ARN of another account",
      source(arn("starling/git/shop", "444455556666")),
      "spec.oci.credentials.secret",
      "is a secret of account 444455556666 in eu-west-1; Starling reads those of account 111122223333 in eu-west-1 below starling/git/: write the name of one there, such as starling/git/shop",
    ],
    [
      "an ARN of another region",
      source(arn("starling/git/shop", "111122223333", "us-east-1")),
      "spec.oci.credentials.secret",
      "is a secret of account 111122223333 in us-east-1; Starling reads those of account 111122223333 in eu-west-1 below starling/git/: write the name of one there, such as starling/git/shop",
    ],
  ])("%s is refused [source.credentials.name]", async (_, document, field, message) => {
    expect(await problemsOf(document)).toMatchObject([{ field, message }]);
    expect((await apply(document)).status).toBe(422);
    expect(api.takeMessages()).toEqual([]);
  });
});

test.each([
  ["a name", source("starling/git/registry")],
  ["an ARN of the own account and region", source(arn("starling/git/registry"))],
  ["both secrets of a Receiver", receiver("starling/hooks/a", "starling/hooks/b")],
  ["a secret of a Cluster", cluster("starling/clusters/c1")],
])("%s below the folder of its kind is taken without a warning about it", async (_, document) => {
  const { status, body } = await apply(document);
  expect(status).toBe(200);
  expect(JSON.stringify(body.items[0].warnings)).not.toContain("secret");
});

test("an object that is stored with such a name is written again with a warning, and not with another such name", async () => {
  await apply(source("starling/git/registry"));
  const row = await api.table.get(keys.object("shop", "Source", "shop"));
  if (row === undefined) throw new Error("the Source is not stored");
  const { spec } = source("old/registry");
  const stored = { ...row, spec: { ...row.spec, oci: spec.oci as typeof row.spec.oci }, version: row.version + 1 };
  await api.table.write([{ put: stored, when: { version: row.version } }]);
  const again = await apply(source("old/registry", "10m"));
  expect(again).toMatchObject({ status: 200, body: { items: [{ outcome: "configured" }] } });
  expect(again.body.items[0].warnings).toEqual([
    "spec.oci.credentials.secret is not below starling/git/, and Starling reads no other secret for a Source; write the name of one there, such as starling/git/shop",
  ]);
  expect((await apply(source("old/other"))).status).toBe(422);
});
