import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { GetSecretValueCommand } from "@aws-sdk/client-secrets-manager";
import { afterAll, beforeAll, expect, test } from "vitest";
import { coreClients } from "#shared/lambda/core-clients.ts";

let server: Server;
let asked = 0;
beforeAll(async () => {
  server = createServer((_request, response) => {
    asked += 1;
    // The first request is never answered, as if the server had disappeared without closing the connection.
    if (asked > 1) response.writeHead(200).end(JSON.stringify({ SecretString: "value" }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

test("a request that is never answered is cancelled and sent again", async () => {
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { secrets } = coreClients({
    region: "us-east-1",
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
    endpoints: { dynamo: endpoint, sqs: endpoint, s3: endpoint, secrets: endpoint },
  });
  const answer = await secrets.send(new GetSecretValueCommand({ SecretId: "a" }));
  expect(answer.SecretString).toBe("value");
  expect(asked).toBe(2);
  secrets.destroy();
});
