import { beforeAll, describe, expect, test } from "vitest";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { type ClusterAddress, clusterSecret, tokenFor } from "#shared/fleet/cluster-secret.ts";

const name = "starling/clusters/prod";
const token = "header.payload.signature";
const base64 = (text: string) => Buffer.from(text).toString("base64");

let [one, other] = ["", ""];
beforeAll(async () => {
  [one, other] = [(await createTlsCertificate()).cert.trim(), (await createTlsCertificate()).cert.trim()];
});

function answer(address: ClusterAddress, secret: unknown) {
  const text = typeof secret === "string" ? secret : JSON.stringify(secret);
  const found = tokenFor(address, { name, text });
  return "token" in found ? "token" : found.code;
}

describe("a token is sent only to the cluster of its secret, in any spelling of the address", () => {
  test.each([
    ["https://prod.example", "https://prod.example"],
    ["https://prod.example", "https://PROD.example"],
    ["https://prod.example", "https://prod.example:443/"],
    ["https://prod.example", "https://prod.example."],
    ["https://prod.example:6443", "https://prod.example:6443/"],
    ["https://127.0.0.1:6443", "https://0x7f.1:6443"],
    ["https://[fd00::1]:6443", "https://[FD00:0:0::1]:6443"],
    ["https://bücher.example", "https://xn--bcher-kva.example"],
    ["https://gate.example/clusters/prod", "https://gate.example/clusters/prod/"],
  ])("the addresses %s and %s are the same", (server, spelled) => {
    expect(answer({ server: spelled }, { server, token })).toBe("token");
    expect(answer({ server }, { server: spelled, token })).toBe("token");
  });

  test.each([
    ["https://prod.example", "https://evil.example"],
    ["https://prod.example", "https://prod.example.evil.example"],
    ["https://prod.example", "https://prod.example:6443"],
    ["https://prod.example", "https://prod.example@evil.example"],
    ["https://prod.example", "https://evil.example/prod.example"],
    ["https://prod.example", "https://evil.example#prod.example"],
    ["https://prod.example", "https://evil.example\\@prod.example"],
    ["https://gate.example/clusters/prod", "https://gate.example/clusters/mine"],
    ["https://gate.example/clusters/prod", "https://gate.example"],
    ["https://gate.example/clusters/prod", "https://gate.example/clusters/prod/../mine"],
    ["https://10.0.0.1", "https://10.0.0.10"],
    ["https://[fd00::1]", "https://[fd00::10]"],
  ])("the addresses %s and %s are different", (server, elsewhere) => {
    expect(answer({ server: elsewhere }, { server, token })).toBe("SecretMismatch");
  });

  test("the certificates of the authority must be the same ones, in any order", () => {
    const server = "https://10.0.0.1:6443";
    const both = { server, caData: base64(`${one}\n${other}\n`) };
    expect(answer(both, { ...both, token })).toBe("token");
    expect(answer(both, { server, caData: base64(`# the other way round\n${other}\n${one}`), token })).toBe("token");
    expect(answer({ server, caData: base64(one) }, { server, caData: base64(`${one}\n${one}`), token })).toBe("token");
    for (const caData of [undefined, "", base64(one), base64(other), base64("none"), 7, null, [base64(one)]]) {
      expect(answer(both, { server, caData, token })).toBe("SecretMismatch");
    }
    expect(answer({ server }, { server, caData: base64(one), token })).toBe("SecretMismatch");
    expect(answer({ server, caData: base64(one) }, { server, token })).toBe("SecretMismatch");
  });

  test("the name in the TLS handshake must be the same, because it decides which server answers behind one address", () => {
    const server = "https://gate.example";
    expect(answer({ server, tlsServerName: "evil.example" }, { server, token })).toBe("SecretMismatch");
    expect(answer({ server }, { server, tlsServerName: "prod.example", token })).toBe("SecretMismatch");
    const named = { server, tlsServerName: "prod.example" };
    expect(answer(named, { ...named, token })).toBe("token");
    expect(answer({ ...named, tlsServerName: "evil.example" }, { ...named, token })).toBe("SecretMismatch");
    expect(answer({ server, tlsServerName: "Gate.example." }, { server, token })).toBe("token");
    expect(answer(named, { ...named, tlsServerName: null, token })).toBe("SecretMismatch");
  });
});

describe("a secret that does not name its cluster", () => {
  const address = { server: "https://10.0.0.1:6443", caData: "abc", tlsServerName: "prod" };
  test.each([
    ["a bare token", token],
    ["nothing", ""],
    ["a text in JSON", JSON.stringify(token)],
    ["null", "null"],
    ["a list", JSON.stringify([{ server: address.server, token }])],
    ["a token alone", JSON.stringify({ token })],
    ["half of it", `{"server": "https://10.0.0.1:6443", "token": "${token}`],
  ])("a secret with %s is not sent, and the error has the remedy", (_what, text) => {
    const found = tokenFor(address, { name, text });
    expect(found).toEqual({
      code: "SecretUnbound",
      message:
        'secret starling/clusters/prod does not say which cluster it is for, and is sent to none; if it is for this one, write {"server":"https://10.0.0.1:6443","caData":"<that of spec.endpoint>","tlsServerName":"prod","token":"<the token>"} into FILE, then: aws secretsmanager put-secret-value --secret-id starling/clusters/prod --secret-string file://FILE',
    });
  });

  test("a secret of another cluster has another error, which does not name that cluster", () => {
    const found = tokenFor(
      { server: "https://evil.example" },
      { name, text: clusterSecret({ server: "https://prod.example", token }) },
    );
    expect(found).toEqual({
      code: "SecretMismatch",
      message:
        'secret starling/clusters/prod is for another cluster and is not sent to https://evil.example: its "server" is another one; correct spec.endpoint.server, or name a secret of this cluster in spec.endpoint.token.secret',
    });
  });

  test.each([undefined, "", "two words", "a\nb", "tök", 7, { token }])(
    "the token %j in a secret is refused",
    (wrong) => {
      const server = "https://prod.example";
      const found = tokenFor({ server }, { name, text: JSON.stringify({ server, token: wrong }) });
      expect(found).toMatchObject({ code: "InvalidCredentials", message: expect.not.stringContaining("two words") });
    },
  );
});
