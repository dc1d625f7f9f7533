/** The installation that the command uses, and the principal as which it signs. */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { EksRegister } from "#local/aws/eks/eks-register.ts";
import { type EksStsServer, startEksAndSts } from "#local/aws/eks/eks-sts-server.ts";
import { IamRoles } from "#local/aws/iam/iam-roles.ts";
import { type CliFixture, principal, startCliFixture } from "#test/integration/cli/cli-fixture.ts";

let cli: CliFixture;
beforeEach(async () => {
  cli = await startCliFixture();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await cli.stop();
});

const url = "https://abc123.execute-api.eu-west-1.amazonaws.com";
const configPath = () => join(cli.folder, ".config", "config.json");
const written = () => JSON.parse(readFileSync(configPath(), "utf8")) as { contexts: object; current?: string };

test("a key that the file cannot have is named, with the one that is near", async () => {
  const file = written() as { contexts: Record<string, object> };
  const { here } = file.contexts;
  writeFileSync(
    configPath(),
    JSON.stringify({ ...file, contexts: { here: { ...here, regoin: "eu-west-1" } }, curent: "here" }),
  );
  const ran = await cli.run("get sources");
  expect(ran).toMatchObject({ code: 2, out: "" });
  expect(ran.err).toContain(
    "contexts.here.regoin: is not a field of a context file (did you mean region?); it has endpoint, region,",
  );
  expect(ran.err).toContain(
    "curent: is not a field of a context file (did you mean current?); it has contexts, current",
  );
  expect(ran.err).toContain(`next: edit ${configPath()}`);
});

describe("context add", () => {
  test("context add keeps the address and the flags, makes the context current, and sends no request", async () => {
    const ran = await cli.run(`context add prod --url ${url}/ --profile work -n payments`);
    expect(ran).toEqual({
      code: 0,
      out: `context prod added, and current (eu-west-1, ${url})\n`,
      err: "  next: starling doctor\n",
    });
    expect(written()).toMatchObject({
      current: "prod",
      contexts: {
        prod: { endpoint: url, region: "eu-west-1", namespace: "payments", credentials: { profile: "work" } },
      },
    });
    expect(Object.keys(written().contexts)).toEqual(["here", "forged", "gone", "prod"]);
    expect(statSync(configPath()).mode & 0o777).toBe(0o600);
    expect(cli.requests()).toBe(0);
  });

  test("context add updates the context of its address, and never replaces that of another installation", async () => {
    await cli.run(`context add prod --url ${url} -n payments`);
    const again = await cli.run(`context add prod --url ${url} -n search`);
    expect(again.out).toContain("context prod changed");
    expect(written().contexts).toMatchObject({ prod: { namespace: "search" } });
    await cli.run(`context add prod --url ${url} --profile night`);
    expect(written().contexts).toMatchObject({ prod: { namespace: "search", credentials: { profile: "night" } } });
    const before = written();
    const other = await cli.run("context add prod --url https://zzz.execute-api.us-east-1.amazonaws.com");
    expect(other).toMatchObject({ code: 1, out: "" });
    expect(other.err).toContain(`context prod exists for another installation: ${url}`);
    expect(other.err).toContain("next: starling context remove prod");
    expect(written()).toEqual(before);
  });

  test("context add refuses an invalid region, wherever it is given", async () => {
    const typo = await cli.run("context add prod --url https://abc123.execute-api.eu-wset-1.amazonaws.com");
    expect(typo).toMatchObject({ code: 2, out: "" });
    expect(typo.err).toContain("this version knows no AWS region eu-wset-1 (did you mean eu-west-1?)");
    const flag = await cli.run("context add prod --url https://starling.example.com --region us-east1");
    expect(flag.err).toContain("--region: this version knows no AWS region us-east1 (did you mean us-east-1?)");
    expect(Object.keys(written().contexts)).not.toContain("prod");
  });

  test("context add takes the region of a custom domain from --region, or AWS_REGION", async () => {
    const own = "context add prod --url https://starling.example.com/fleet";
    expect((await cli.run(`${own} --region ap-south-1`)).out).toContain(
      "(ap-south-1, https://starling.example.com/fleet)",
    );
    expect((await cli.run(own, { env: { AWS_REGION: "sa-east-1" } })).out).toContain("(sa-east-1, ");
  });

  test.each([
    ["context add prod", "neither --stack nor --url is given"],
    [`context add prod --url ${url} --stack s`, "both --stack and --url are given"],
    ["context add prod --url starling", '--url is "starling"; expected an https URL'],
    ["context add prod --url http://starling.example.com", "expected https"],
    ["context add prod --url http://127.evil.example.com", "expected https"],
    ["context add prod --url ftp://starling.example.com", "expected https"],
    ["context add prod --url https://ana:pw@starling.example.com", "expected an address without user and password"],
    [`context add prod --url ${url}/?a=b`, "without query and fragment"],
    [`context add prod --url ${url}/#a`, "without query and fragment"],
    ["context add prod --url https://starling.example.com", "no region is given"],
    [
      "context add prod --url https://abc.execute-api.eu-west-1.amazonaws.com --region us-east-1",
      '--region is "us-east-1", but https://abc.execute-api.eu-west-1.amazonaws.com is in eu-west-1',
    ],
    [`context add -x --url ${url}`, "unknown flag -x"],
    [`context add __proto__ --url ${url}`, 'NAME is "__proto__"'],
    [`context add ${"p".repeat(64)} --url ${url}`, "expected at most 63 letters"],
    [`context add prod --url ${url} --role starling-operator`, "expected the ARN of a role"],
    [`context add prod --url ${url} -n Team_A`, '-n is "Team_A"; expected 1 to 63 characters of a-z'],
    ["context remove prod", 'there is no context "prod"; known contexts: here, forged, gone'],
    ["context use constructor", 'there is no context "constructor"'],
    ["context show constructor", 'there is no context "constructor"'],
  ])("%s is refused with what to write, and nothing is kept", async (line, message) => {
    const before = written();
    const ran = await cli.run(line);
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toContain(message);
    expect(ran.err).toMatch(/ {2}next: \S/);
    expect(written()).toEqual(before);
  });
});

test("context show prints everything but keys", async () => {
  const ran = await cli.run("context show");
  expect(ran.out).toMatch(
    /^name: +here\ncurrent: +true\nendpoint: +http:\/\/127.+\nregion: +us-east-1\nnamespace: +payments\ncredentials: +key AKTEST\n/,
  );
  expect(ran.out).not.toContain("not-a-secret");
  const json = await cli.run("context show forged -o json");
  expect(JSON.parse(json.out)).toMatchObject({ name: "forged", current: false, credentials: "key AKTEST" });
  expect(json.out).not.toContain("wrong");
});

test("context remove forgets one context, and leaves none current if that was the current one", async () => {
  expect(await cli.run("context remove gone")).toEqual({ code: 0, out: "context gone removed\n", err: "" });
  expect(written()).toMatchObject({ current: "here" });
  const current = await cli.run("context remove here");
  expect(current.err).toContain("no context is current");
  expect(written().current).toBeUndefined();
  expect(Object.keys(written().contexts)).toEqual(["forged"]);
  expect((await cli.run("get clusters")).err).toContain("no context is chosen");
});

test("whoami prints the principal that the installation saw, and the installation", async () => {
  const ran = await cli.run("whoami");
  expect(ran.out).toBe(`${principal}\n`);
  expect(ran.err).toMatch(/^context here .*\ninstallation starling\.111122223333\.eu-west-1\n$/);
  expect(JSON.parse((await cli.run("whoami -o json")).out)).toEqual({
    principal,
    installation: "starling.111122223333.eu-west-1",
  });
  expect(await cli.run("whoami --context forged")).toMatchObject({ code: 3, out: "" });
});

describe("a role", () => {
  const role = "arn:aws:iam::111122223333:role/starling-operator";
  let sts: EksStsServer;
  let roles: IamRoles;
  beforeEach(async () => {
    roles = new IamRoles();
    sts = await startEksAndSts({ principals: cli.principals, roles, clusters: new EksRegister() });
    vi.stubEnv("AWS_ENDPOINT_URL_STS", sts.endpoint);
    const credentials = "[work]\naws_access_key_id = AKTEST\naws_secret_access_key = not-a-secret\n";
    vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", cli.write("credentials", credentials));
    vi.stubEnv("AWS_CONFIG_FILE", cli.write("config", ""));
    const added = await cli.run(`context add prod --url ${cli.url} --region us-east-1 --profile work --role ${role}`);
    expect(added.code).toBe(0);
  });
  afterEach(() => sts.stop());

  test("the role is assumed once, with the keys of the profile, before requests are signed", async () => {
    roles.put({ arn: role, trusts: [{ principalArn: principal }] });
    const ran = await cli.run("whoami");
    expect(ran.err).toMatch(/^context prod .*\ninstallation .*\n$/);
    expect(ran.out).toBe("arn:aws:sts::111122223333:assumed-role/starling-operator/starling\n");
    expect(sts.calls()).toMatchObject([{ operation: "AssumeRole", region: "us-east-1", principalArn: principal }]);
  });

  test("a role that does not trust the keys is named, and the installation is asked nothing", async () => {
    const ran = await cli.run("whoami");
    expect(ran).toMatchObject({ code: 3, out: "" });
    expect(ran.err).toContain(
      `cannot assume role ${role} of context prod: ${principal} is not allowed to sts:AssumeRole (`,
    );
    expect(cli.requests()).toBe(0);
  });
});

test("AWS is not asked with the keys of a machine that runs by itself", async () => {
  const file = written() as { contexts: Record<string, object> };
  const local = { ...file.contexts.here, sts: "http://127.0.0.1:9" };
  writeFileSync(configPath(), JSON.stringify({ contexts: { local }, current: "local" }));
  vi.stubEnv("AWS_ENDPOINT_URL_EKS", "http://127.0.0.1:9");
  const { err } = await cli.run("cluster add -l env=prod --regions us-east-1");
  expect(err).toContain("context local belongs to a local machine");
  expect(err).not.toContain("ECONNREFUSED");
});
