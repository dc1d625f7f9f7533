/**
 * A stolen role can do no more than its policy says: every verb of people in the loop, over a signed request that the
 * gateway compares with the synthesized policies, before the function of the API runs.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ApiAnswer, openApiSession } from "#local/machine/api-session.ts";
import { newAccessKey } from "#local/machine/machine.ts";
import { pathChoices } from "#shared/fleet/api/api-routes.ts";
import { type CliFixture, fleet, startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { requestsOf } from "#test/support/policy-guard.ts";
import { synthesizeTemplates } from "#test/synth/synthesized.ts";

const { resources } = await synthesizeTemplates();
const group = "/v1/namespaces/payments/syncgroups/shop";
const policies = ["Viewer", "Reader", "Operator", "Approver", "Robot", "Administrator"] as const;

/** By path of the verb, the roles that may ask for it. */
const verbs: Readonly<Record<string, readonly (typeof policies)[number][]>> = {
  ...Object.fromEntries(
    pathChoices.rolloutVerb.map((verb) => [`${group}/${verb}`, ["Operator", "Administrator"] as const]),
  ),
  [`${group}/approve`]: ["Approver", "Robot", "Administrator"],
  [`${group}/approve-guard`]: ["Administrator"],
  [`${group}/exempt`]: ["Administrator"],
  [`${group}/rollback-deleting`]: ["Administrator"],
  "/v1/clusters/c1/cordon": ["Operator", "Administrator"],
  "/v1/clusters/c1/uncordon": ["Operator", "Administrator"],
  "/v1/clusters/c1/check": ["Operator", "Administrator"],
  "/v1/freezes/night": ["Operator", "Administrator"],
};

let cli: CliFixture;
beforeAll(async () => {
  cli = await startCliFixture();
  expect((await cli.run("apply -f - -q --yes", { input: fleet })).code).toBe(0);
});
afterAll(() => cli.stop());

async function answerTo(policy: string, path: string): Promise<string> {
  const credentials = newAccessKey();
  const principalArn = `arn:aws:sts::111122223333:assumed-role/${policy}/thief`;
  cli.principals.add({ ...credentials, principalArn, invokes: requestsOf(resources, policy) });
  const session = openApiSession({ endpoint: cli.url, region: "us-east-1", credentials });
  const before = cli.requests();
  const error = await session.call("POST", path, { reason: "stolen" }).catch((refusal: unknown) => refusal);
  if (cli.requests() > before) return "reached the function";
  return error instanceof ApiAnswer && error.status === 403 ? "refused by the gateway" : `failed: ${error}`;
}

describe.each(Object.entries(verbs))("POST %s", (path, allowed) => {
  test.each(policies)("as a session of a role with the policy of a %s", async (policy) => {
    const expected = allowed.includes(policy) ? "reached the function" : "refused by the gateway";
    expect(await answerTo(policy, path)).toBe(expected);
  });
});
