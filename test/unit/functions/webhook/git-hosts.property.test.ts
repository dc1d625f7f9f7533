import fc from "fast-check";
import { expect, test } from "vitest";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";
import { recorded, type SenderName, senders, signed } from "#test/support/webhook-senders.ts";
import { WebhookWorld } from "#test/support/webhook-world.ts";

const names = Object.keys(senders) as readonly SenderName[];
const events = ["push", "system", "create", "ping"];
const token = `whsec_${Buffer.from("a key").toString("base64")}`;

/** Replaces one value somewhere in a body, or takes it out. */
function changedAt(body: unknown, path: readonly number[], value: unknown): unknown {
  const [first, ...rest] = path;
  if (first === undefined || typeof body !== "object" || body === null) return value;
  const entries = Object.entries(body);
  const at = entries.length === 0 ? 0 : first % entries.length;
  const changed = entries.map(([key, old], index) => [key, index === at ? changedAt(old, rest, value) : old] as const);
  return Array.isArray(body) ? changed.map(([, old]) => old) : Object.fromEntries(changed);
}

const bodies = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.json(),
  fc.constantFrom("[".repeat(400_000), '{"a":'.repeat(100_000), "\u0000", "\ud800", '{"__proto__":{"ping":true}}'),
);

const usual = new Set([200, 202, 400]);

test.each(propertySeeds)(
  "any body of a genuine sender gets an answer, and it wakes no Source of another repository (STARLING_PROPERTY_SEED=%i) [receiver.body]",
  async (seed) => {
    const world = new WebhookWorld();
    world.secret = JSON.stringify(["s3cret", token]);
    await world.addSource("one", { url: "https://nowhere.example.com/a/b" });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...names), fc.constantFrom(...events), bodies, async (name, event, body) => {
        const secret = name === "gitlabSigned" ? token : "s3cret";
        const { status, woken } = await world.deliver(signed(name, { event, body, secret }));
        expect(usual).toContain(status);
        expect(woken).toEqual([]);
      }),
      { seed, numRuns: propertyRuns(100) },
    );
  },
);

test.each(propertySeeds)(
  "a recorded body with any value in any place gets an answer (STARLING_PROPERTY_SEED=%i)",
  async (seed) => {
    const world = new WebhookWorld();
    world.secret = JSON.stringify(["s3cret", token]);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...names),
        fc.array(fc.nat(30), { minLength: 1, maxLength: 6 }),
        fc.jsonValue(),
        async (name, path, value) => {
          const secret = name === "gitlabSigned" ? token : "s3cret";
          const body = JSON.stringify(changedAt(JSON.parse(recorded(name, "push").body), path, value));
          expect(usual).toContain((await world.deliver(signed(name, { body, secret }))).status);
        },
      ),
      { seed, numRuns: propertyRuns(100) },
    );
  },
);

test.each(propertySeeds)(
  "no header proves a sender who does not know the secret (STARLING_PROPERTY_SEED=%i) [receiver.proof]",
  async (seed) => {
    const world = new WebhookWorld();
    world.secret = JSON.stringify(["s3cret", token]);
    const text = fc.oneof(
      fc.string(),
      fc.base64String(),
      fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: 63, maxLength: 129 }),
    );
    const prefix = fc.constantFrom("", "sha256=", "sha512=", "sha1=", "v1,", "Basic ", "whsec_");
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...names), prefix, text, async (name, begins, rest) => {
        const delivered = recorded(name, "push");
        const proofs = Object.keys(senders[name].prove("s3cret", "")).map(
          (header) => [header, `${begins}${rest}`] as const,
        );
        const headers = { ...delivered.headers, ...Object.fromEntries(proofs) };
        expect(await world.deliver({ ...delivered, headers })).toMatchObject({ status: 401, woken: [] });
      }),
      { seed, numRuns: propertyRuns(100) },
    );
  },
);
