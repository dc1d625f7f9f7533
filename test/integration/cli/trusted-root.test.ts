/** A trusted_root.json that the verifier could not read, as people learn of it before anything resolves. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type CliFixture, startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { startSigstore } from "#test/support/sigstore.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

type Root = Record<string, Record<string, unknown>[]>;

let cli: CliFixture;
let whole: string;
beforeAll(async () => {
  cli = await startCliFixture();
  const sigstore = await startSigstore();
  whole = sigstore.trustedRoot();
  await sigstore.stop();
});
afterAll(() => cli.stop());

const identity = Object.fromEntries([
  ["issuer", "a"],
  ["subject", "b"],
]);
const field = "spec.oci.verify.cosign.trustedRoot";
const source = (trustedRoot: string) => ({
  apiVersion: "starling.dev/v1alpha1",
  kind: "Source",
  metadata: { name: "shop", namespace: "payments" },
  spec: {
    oci: {
      url: "oci://ghcr.io/acme/shop",
      verify: { cosign: { identities: [identity], trustedRoot } },
    },
  },
});
const first = (root: Root, part: string) => root[part]?.[0] ?? {};
const rawBytes = Buffer.from("no certificate").toString("base64");

test("a whole root is valid, for the command and for the API", async () => {
  expect(await cli.run("validate -f -", { input: JSON.stringify(source(whole)) })).toMatchObject({ code: 0, err: "" });
  const answer = await apiFixture().call("POST", "/v1/apply", { documents: [source(whole)] });
  expect(answer.status).toBe(200);
});

test.each<[string, (root: Root) => void, RegExp]>([
  [
    "an authority without certificates",
    (root) => delete first(root, "certificateAuthorities").certChain,
    /certificateAuthorities\[0\] has no certChain\.certificates/,
  ],
  [
    "a damaged certificate",
    (root) => Object.assign(first(root, "certificateAuthorities"), { certChain: { certificates: [{ rawBytes }] } }),
    /certificateAuthorities\[0\] is damaged \(.+\)/,
  ],
  [
    "a clock with a damaged certificate",
    (root) => Object.assign(first(root, "timestampAuthorities"), { certChain: { certificates: [{ rawBytes }] } }),
    /timestampAuthorities\[0\] is damaged \(.+\)/,
  ],
  ["a log without a key", (root) => delete first(root, "tlogs").publicKey, /tlogs\[0\] has no publicKey\.rawBytes/],
  [
    "a log with a damaged key",
    (root) => Object.assign(first(root, "tlogs").publicKey as object, { rawBytes }),
    /tlogs\[0\] is damaged \(.+\)/,
  ],
  ["a log without an id", (root) => delete first(root, "ctlogs").logId, /ctlogs\[0\] has no logId/],
  [
    "a key of an unknown kind",
    (root) => Object.assign(first(root, "tlogs").publicKey as object, { keyDetails: "PKIX_NEW" }),
    /PKIX_NEW/,
  ],
])("%s is refused by the command and by the API", async (_, breakIt, what) => {
  const root = JSON.parse(whole);
  breakIt(root);
  const document = source(JSON.stringify(root));
  const offline = await cli.run("validate -f -", { input: JSON.stringify(document) });
  expect(offline).toMatchObject({ code: 2, err: expect.stringContaining(`Source/shop: ${field} cannot be read: `) });
  expect(offline.err).toMatch(what);
  expect(offline.err).toContain("give the whole text of a trusted_root.json");
  const { status, body } = await apiFixture().call("POST", "/v1/apply", { documents: [document] });
  expect({ status, field: body.problems[0].field }).toEqual({ status: 422, field });
  expect(body.problems[0].message).toMatch(what);
});
