/** Reads with kubectl the fleet that `npm run demo -- --example registry` leaves, after signed and other versions. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type KeptDemo, keptDemo } from "#test/support/kept-demo.ts";

let demo: KeptDemo | undefined;

beforeAll(async () => {
  demo = await keptDemo("registry", 270_000);
}, 300_000);

afterAll(() => demo?.stop());

async function read(cluster: string, ...args: readonly string[]): Promise<unknown> {
  return demo?.read(cluster, "shop", ...args);
}

test("the demo prints each published version before what follows from it", () => {
  const lines = demo?.lines() ?? [];
  const expected = [
    / {2}eu-1: 4\.2\.0 EUR, eu-2: 4\.2\.0 EUR, us-1: 4\.2\.0 USD, us-2: 4\.2\.0 USD$/,
    / {2}\$ helm push web-4\.3\.0\.tgz oci:\/\/127\.0\.0\.1:\d+\/charts$/,
    / {2}the Source refuses it: SignatureMissing$/,
    / is not signed; sign it with cosign/,
    / {2}\$ cosign sign --key own\.key 127\.0\.0\.1:\d+\/charts\/web@sha256:[0-9a-f]{12}…$/,
    / {2}the Source refuses it: SignatureKeyUnknown$/,
    / {2}eu-1: 4\.2\.0 EUR, eu-2: 4\.2\.0 EUR, us-1: 4\.2\.0 USD, us-2: 4\.2\.0 USD$/,
    / {2}\$ cosign sign --key cosign\.key 127\.0\.0\.1:\d+\/charts\/web@sha256:[0-9a-f]{12}…$/,
    / {2}canary 1\/1 +rest 0\/3/,
    / {2}eu-1: 4\.3\.0 EUR, eu-2: 4\.3\.0 EUR, us-1: 4\.3\.0 USD, us-2: 4\.3\.0 USD$/,
    / {2}\$ helm push web-5\.0\.0\.tgz /,
    / {2}the Source stays at 4\.3\.0@sha256:[0-9a-f]{64}$/,
    / {2}eu-1: 4\.3\.0 EUR, eu-2: 4\.3\.0 EUR, us-1: 4\.3\.0 CAD, us-2: 4\.3\.0 CAD$/,
    /^in sync: 4\/4 clusters at 4\.3\.0@sha256:[0-9a-f]{64}$/,
  ];
  let from = 0;
  for (const pattern of expected) {
    const at = lines.findIndex((line, index) => index >= from && pattern.test(line));
    expect(at, `${pattern} after line ${from}`).toBeGreaterThanOrEqual(from);
    from = at + 1;
  }
});

test.each([
  // The API server counts each change of a Deployment's spec. A change of the values alone is in the ConfigMap.
  { cluster: "eu-1", replicas: 1, data: { HOST: "shop.eu.acme.example", CURRENCY: "EUR" } },
  { cluster: "eu-2", replicas: 1, data: { HOST: "shop.eu.acme.example", CURRENCY: "EUR" } },
  { cluster: "us-1", replicas: 2, data: { HOST: "shop.acme.example", CURRENCY: "CAD" } },
  { cluster: "us-2", replicas: 2, data: { HOST: "shop.acme.example", CURRENCY: "CAD" } },
])("$cluster has the published version, with the values of its region", async ({ cluster, replicas, data }) => {
  expect(await read(cluster, "configmap", "settings")).toMatchObject({ data: { ...data, VERSION: "4.3.0" } });
  expect(await read(cluster, "deployment", "web")).toMatchObject({
    metadata: { generation: 2 },
    spec: { replicas, template: { spec: { containers: [{ image: "registry.example/shop/web:4.3.0" }] } } },
  });
});
