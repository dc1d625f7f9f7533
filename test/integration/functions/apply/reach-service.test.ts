/** The way of a zone's worker to a service of AWS: real names, sockets and answers, and the first link that does not hold. */
import { once } from "node:events";
import { createServer as createHttp } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { createServer as createTls } from "node:tls";
import { GetCallerIdentityCommand, STSClient } from "@aws-sdk/client-sts";
import { afterEach, expect, test } from "vitest";
import { reachService } from "#functions/apply/check/reach-service.ts";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { wayTo } from "#shared/adapters/net/endpoint-way.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listening(server: Server): Promise<number> {
  servers.push(server.listen(0, "127.0.0.1"));
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** A service that gives this answer to each request, and counts them. */
async function answering(status: number, code: string, message = "no") {
  let requests = 0;
  const port = await listening(
    createHttp((request, response) => {
      requests += 1;
      request.resume();
      const error = `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`;
      const identity =
        "<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:iam::111122223333:role/apply</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>";
      response.writeHead(status, { "content-type": "text/xml" }).end(status === 200 ? identity : error);
    }),
  );
  return { endpoint: `http://127.0.0.1:${port}`, requests: () => requests };
}

function reach(endpoint: string, needed = true) {
  const credentials = { accessKeyId: "AKIATEST", secretAccessKey: "secret" };
  const sts = new STSClient({ region: "us-east-1", endpoint, credentials, maxAttempts: 1 });
  const command = new GetCallerIdentityCommand({});
  const send = (options: { readonly abortSignal: AbortSignal }) => sts.send(command, options);
  return reachService({ service: "sts", region: "us-east-1", needed, command, send });
}

test("a service that answers is reached by one request, and an address of the own machine shows no network", async () => {
  const service = await answering(200, "");
  const found = await reach(service.endpoint);
  expect(found).toEqual({
    ...{ service: "sts", region: "us-east-1", state: "ok", needed: true },
    ...{ host: "127.0.0.1", addresses: ["127.0.0.1"] },
  });
  expect(service.requests()).toBe(1);
});

test.each([
  [403, "SignatureDoesNotMatch", { state: "broken", link: "token", code: "SignatureDoesNotMatch" }],
  [400, "ExpiredToken", { state: "broken", link: "token" }],
  [403, "AccessDenied", { state: "limited", link: "authorization", code: "AccessDenied" }],
  [400, "ResourceNotFound", { state: "ok" }],
  [503, "ServiceUnavailable", { state: "unknown", code: "ServiceUnavailable" }],
  [400, "Throttling", { state: "unknown" }],
])("an answer %i %s is a finding, and no broken route", async (status, code, finding) => {
  const service = await answering(status, code);
  const found = await reach(service.endpoint);
  expect(found).toMatchObject(finding);
  if (finding.state === "ok") expect(found).not.toHaveProperty("link");
});

test("a refusal by the policy of a VPC endpoint is told apart from one by another policy", async () => {
  const text =
    "User is not authorized to perform sts:GetCallerIdentity because no VPC endpoint policy allows the action";
  const service = await answering(403, "AccessDenied", text);
  expect(await reach(service.endpoint)).toMatchObject({
    ...{ state: "broken", link: "authorization", code: "EndpointPolicy" },
    message: expect.stringContaining("VPC endpoint policy"),
  });
});

test("a closed port is a broken route, which is no problem where nobody needs the service", async () => {
  const server = createServer();
  const port = await listening(server);
  servers.splice(0);
  server.close();
  await once(server, "close");
  const finding = { link: "route", code: "ECONNREFUSED", addresses: ["127.0.0.1"] };
  expect(await reach(`http://127.0.0.1:${port}`)).toMatchObject({ state: "broken", ...finding });
  expect(await reach(`http://127.0.0.1:${port}`, false)).toMatchObject({ state: "unneeded", ...finding });
});

test("a name that does not resolve is a broken link of its own, with no address", async () => {
  const found = await reach("https://sts.us-east-1.invalid");
  expect(found).toMatchObject({ state: "broken", link: "dns", host: "sts.us-east-1.invalid", addresses: [] });
  expect(found.code).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/);
});

test("a server that takes connections and says nothing is a broken link tls, within the patience", async () => {
  let taken = 0;
  const port = await listening(createServer(() => (taken += 1)));
  const way = await wayTo({ host: "127.0.0.1", port, tls: true }, 200);
  expect(way.broken).toEqual({
    ...{ link: "tls", code: "ETIMEDOUT" },
    message: `nothing answers at 127.0.0.1:${port} within 0.2 s`,
  });
  expect(taken).toBe(1);
});

test("a server that ends connections, and one with the certificate of nobody known, are broken links tls", async () => {
  const hung = await listening(createServer((socket) => socket.destroy()));
  expect((await wayTo({ host: "127.0.0.1", port: hung, tls: true }, 5000)).broken?.link).toBe("tls");
  const { key, cert } = await createTlsCertificate();
  const stranger = await listening(createTls({ key, cert }));
  expect((await wayTo({ host: "localhost", port: stranger, tls: true }, 5000)).broken).toMatchObject({
    ...{ link: "tls", code: expect.stringMatching(/SELF_SIGNED|UNABLE_TO_VERIFY/) },
  });
});
