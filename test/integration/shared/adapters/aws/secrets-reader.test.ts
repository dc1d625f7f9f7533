/** The answers of Secrets Manager, and the reader's cache. */

import { createServer } from "node:http";
import { SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { wireWebhook } from "#functions/webhook/wire.ts";
import { listenOnLoopback } from "#local/base/loopback-server.ts";
import { SecretsManagerReader } from "#shared/adapters/aws/secrets-reader.ts";
import { systemClock } from "#shared/adapters/system.ts";
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

const away = { type: "InternalServiceError", message: "try again" };

/** The next answer: this refusal, or the value in `held`. */
let refusal: Refusal | undefined;
let held: object;
let asked: number;
let now: number;
let client: SecretsManagerClient;
let stop: () => Promise<void>;
const clock = { ...systemClock, now: () => new Date(now) };

beforeEach(async () => {
  asked = 0;
  refusal = undefined;
  held = {};
  now = Date.UTC(2026, 0, 1);
  const server = createServer((request, response) => {
    asked += 1;
    request.resume().on("end", () => {
      if (refusal === undefined) {
        response.writeHead(200, { "content-type": "application/x-amz-json-1.1" }).end(JSON.stringify(held));
        return;
      }
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
  const rows: readonly (readonly [legend: string, refusal: Refusal, desired: object])[] = [
    [
      "a refusal of the name becomes an error with the allowed names",
      { type: "AccessDeniedException", message: notAuthorized },
      {
        code: "SecretDenied",
        message: expect.stringMatching(/secret other\/token: its name must start with starling\/clusters\//),
      },
    ],
    [
      "a refusal of the key becomes an error about the key's policy, and not about the name",
      { type: "AccessDeniedException", message: "Access to KMS is not allowed" },
      {
        code: "SecretKeyDenied",
        message: expect.stringMatching(/kms:Decrypt in the policy of the key.* under aws\/secretsmanager$/),
        data: { name: "other/token" },
      },
    ],
    [
      "a key that cannot decrypt becomes an error about the key",
      {
        type: "DecryptionFailure",
        message: "Secrets Manager can't decrypt the protected secret text using the provided KMS key.",
      },
      { code: "SecretKeyDenied", retry: "transient", message: expect.stringMatching(/enable the key/) },
    ],
    [
      "a secret without a value is reported like a missing one",
      none,
      { code: "SecretNotFound", retry: "transient", data: { name: "other/token" } },
    ],
    [
      "a refusal for another reason is reported as neither missing nor denied",
      away,
      {
        code: "SecretsUnavailable",
        retry: "transient",
        message: "Secrets Manager did not return secret other/token: try again",
        data: { name: "other/token" },
      },
    ],
  ];
  test.each(rows)("%s", async (_legend, said, desired) => {
    refusal = said;
    const reader = new SecretsManagerReader(client, clock, { prefix: "starling/clusters/" });
    const error = await reader.read("other/token").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject(desired);
    if (said.message.includes("KMS"))
      expect(error).not.toMatchObject({ message: expect.stringContaining("starts with") });
  });
});

describe("a value", () => {
  const read = (reader: SecretsManagerReader, fresh?: "fresh") =>
    reader.read("token", fresh === undefined ? {} : { fresh: true });

  test("the value is read once in five minutes for each secret, and a change is seen", async () => {
    const reader = new SecretsManagerReader(client, clock);
    held = { SecretString: "one" };
    expect(await read(reader)).toBe("one");
    held = { SecretString: "two" };
    now += 299_999;
    expect([await read(reader), asked]).toEqual(["one", 1]);
    expect([await reader.read("another"), asked]).toEqual(["two", 2]);
    now += 1;
    expect([await read(reader), asked]).toEqual(["two", 3]);
  });

  test("the value is read once for all callers at the same time", async () => {
    const reader = new SecretsManagerReader(client, clock);
    held = { SecretString: "one" };
    expect(await Promise.all(Array.from({ length: 20 }, () => read(reader)))).toEqual(Array(20).fill("one"));
    expect(asked).toBe(1);
  });

  test("a kept value survives a fresh read that is not answered", async () => {
    const reader = new SecretsManagerReader(client, clock);
    held = { SecretString: "one" };
    await read(reader);
    refusal = away;
    await expect(read(reader, "fresh")).rejects.toMatchObject({ code: "SecretsUnavailable" });
    expect([await read(reader), asked]).toEqual(["one", 2]);
  });

  test("the value is no longer given when a fresh read finds that it is gone", async () => {
    const reader = new SecretsManagerReader(client, clock);
    held = { SecretString: "one" };
    await read(reader);
    refusal = none;
    for (const freshness of ["fresh", undefined] as const)
      await expect(read(reader, freshness)).rejects.toMatchObject({ code: "SecretNotFound" });
    expect(asked).toBe(2);
  });

  test("the value is read again for a caller that needs a fresh one, and kept for the others", async () => {
    const reader = new SecretsManagerReader(client, clock);
    held = { SecretString: "one" };
    await read(reader);
    held = { SecretString: "two" };
    expect(await read(reader, "fresh")).toBe("two");
    expect([await read(reader), asked]).toEqual(["two", 2]);
  });

  test("a value that was refused is read again after half a minute, or for a caller that needs a fresh one", async () => {
    const reader = new SecretsManagerReader(client, clock);
    refusal = none;
    const refused = () => expect(read(reader)).rejects.toMatchObject({ code: "SecretNotFound" });
    await Promise.all(Array.from({ length: 20 }, refused));
    refusal = undefined;
    held = { SecretString: "" };
    now += 29_999;
    await refused();
    expect(asked).toBe(1);
    now += 1;
    expect([await read(reader), asked]).toEqual(["", 2]);
    refusal = none;
    await expect(read(reader, "fresh")).rejects.toMatchObject({ code: "SecretNotFound" });
    refusal = undefined;
    expect([await read(reader, "fresh"), asked]).toEqual(["", 4]);
  });

  test("a value whose read was not answered is read again at once", async () => {
    const reader = new SecretsManagerReader(client, clock);
    refusal = away;
    await expect(read(reader)).rejects.toMatchObject({ code: "SecretsUnavailable" });
    refusal = undefined;
    held = { SecretString: "one" };
    expect(await read(reader)).toBe("one");
  });

  test("the value is read again in the next session when its own has ended", async () => {
    refusal = { type: "ExpiredTokenException", message: "The security token included in the request is expired" };
    await expect(read(new SecretsManagerReader(client, clock))).rejects.toMatchObject({ code: "SecretsUnavailable" });
    expect(asked).toBe(2);
  });

  test("a value that is no text is reported like a missing one", async () => {
    held = { SecretBinary: "eA==" };
    await expect(read(new SecretsManagerReader(client, clock))).rejects.toMatchObject({ code: "SecretNotFound" });
  });
});

test("any number of webhook requests cause one read in half a minute while the secret has no value", async () => {
  refusal = none;
  const env = {
    STARLING_TABLE: "table",
    STARLING_QUEUE_RESOLVE: "http://127.0.0.1/queue",
    STARLING_WEBHOOK_SECRET: "starling/webhook",
    STARLING_SECRET_PREFIX: "starling/hooks/",
    STARLING_RESOLVE_ZONE: "-",
  };
  const unused = {} as Omit<CoreClients, "secrets">;
  const webhook = wireWebhook(env, { ...unused, secrets: client }, { clock });
  const knock = () =>
    webhook({ rawPath: "/hook/github", headers: { "x-hub-signature-256": "sha256=00" }, body: "{}" }, {});
  const answers = [...(await Promise.all(Array.from({ length: 20 }, knock))), await knock(), await knock()];
  expect(new Set(answers.map(({ statusCode }) => statusCode))).toEqual(new Set([503]));
  expect(asked).toBe(1);
  now += 31_000;
  await knock();
  expect(asked).toBe(2);
});
