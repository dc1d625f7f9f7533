/** What Secrets Manager refuses, as it says it on the wire. */
import { createServer } from "node:http";
import { SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { wireWebhook } from "#functions/webhook/wire.ts";
import { listenOnLoopback } from "#local/loopback-server.ts";
import { SecretsManagerReader } from "#shared/adapters/secrets-reader.ts";
import type { CoreClients } from "#shared/lambda/core-clients.ts";

interface Refusal {
  readonly type: string;
  readonly message: string;
}

const notAuthorized =
  "User: arn:aws:sts::111122223333:assumed-role/starling-control-Apply/apply is not authorized to perform: " +
  "secretsmanager:GetSecretValue on resource: other/token because no identity-based policy allows the action";
const none = {
  type: "ResourceNotFoundException",
  message: "Secrets Manager can't find the specified secret value for staging label: AWSCURRENT",
};

let refusal: Refusal;
let asked: number;
let now: number;
let client: SecretsManagerClient;
let stop: () => Promise<void>;
const clock = { now: () => new Date(now) };

beforeEach(async () => {
  asked = 0;
  now = Date.UTC(2026, 0, 1);
  const server = createServer((request, response) => {
    asked += 1;
    request.resume().on("end", () => {
      response.writeHead(400, { "content-type": "application/x-amz-json-1.1" });
      response.end(JSON.stringify({ __type: refusal.type, Message: refusal.message, message: refusal.message }));
    });
  });
  const listening = await listenOnLoopback(server);
  stop = listening.stop;
  client = new SecretsManagerClient({
    region: "eu-central-1",
    endpoint: listening.origin.replace(/^https:/, "http:"),
    credentials: { accessKeyId: "a", secretAccessKey: "b" },
    maxAttempts: 1,
  });
});
afterEach(async () => {
  client.destroy();
  await stop();
});

describe("a refusal", () => {
  const rows: readonly (readonly [legend: string, refusal: Refusal, wanted: object])[] = [
    [
      "of the name says which names are allowed",
      { type: "AccessDeniedException", message: notAuthorized },
      {
        code: "SecretDenied",
        message: expect.stringMatching(/^secret other\/token .* starts with starling\/clusters\//),
      },
    ],
    [
      "of the key names the key's policy, and not the name",
      { type: "AccessDeniedException", message: "Access to KMS is not allowed" },
      { code: "SecretKeyDenied", message: expect.stringMatching(/kms:Decrypt in the policy of the key/) },
    ],
    [
      "of a key that cannot decrypt, too",
      {
        type: "DecryptionFailure",
        message: "Secrets Manager can't decrypt the protected secret text using the provided KMS key.",
      },
      { code: "SecretKeyDenied", retry: "transient", message: expect.stringMatching(/enable the key/) },
    ],
    ["of a secret without a value is told as one that is not there", none, { code: "SecretNotFound" }],
  ];
  test.each(rows)("%s", async (_legend, said, wanted) => {
    refusal = said;
    const reader = new SecretsManagerReader(client, clock, { prefix: "starling/clusters/" });
    const error = await reader.read("other/token").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject(wanted);
    if (said.message.includes("KMS"))
      expect(error).not.toMatchObject({ message: expect.stringContaining("starts with") });
  });
});

test("while the webhook's secret has no value, strangers make one question in half a minute", async () => {
  refusal = none;
  const env = {
    STARLING_TABLE: "table",
    STARLING_QUEUE_RESOLVE: "http://127.0.0.1/queue",
    STARLING_WEBHOOK_SECRET: "starling/webhook",
  };
  const unused = {} as Omit<CoreClients, "secrets">;
  const webhook = wireWebhook(env, { ...unused, secrets: client }, { clock });
  const knock = () => webhook({ headers: { "x-hub-signature-256": "sha256=00" }, body: "{}" }, {});
  const answers = [...(await Promise.all(Array.from({ length: 20 }, knock))), await knock(), await knock()];
  expect(new Set(answers.map(({ statusCode }) => statusCode))).toEqual(new Set([503]));
  expect(asked).toBe(1);
  now += 31_000;
  await knock();
  expect(asked).toBe(2);
});
