/** `starling cluster check --as-me` finds by IAM which link is the reason for AccessDenied from STS. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { explained } from "#cli/access/denied-role.ts";
import { EksAccounts } from "#cli/access/eks-accounts.ts";
import { EksRegister } from "#local/aws/eks/eks-register.ts";
import { startEksAndSts } from "#local/aws/eks/eks-sts-server.ts";
import { IamRoles, type Trust } from "#local/aws/iam/iam-roles.ts";
import { startIam } from "#local/aws/iam/iam-server.ts";
import { Principals } from "#local/aws/iam/principals.ts";

const ana = "arn:aws:iam::111122223333:user/ana";
const key = { accessKeyId: "AKANA", secretAccessKey: "s" };
const arn = "arn:aws:iam::444455556666:role/starling/clusters/c1";
const applyRole = "arn:aws:iam::111122223333:role/starling-control-Apply";
const externalId = "starling.111122223333.eu-west-1/c1";
const denied = {
  finding: {
    ...({ link: "role", state: "broken", value: arn, code: "RoleDenied", remedy: "see that the role exists" } as const),
    message: `role ${arn} may not be assumed (User: arn:aws:sts::111122223333:assumed-role/starling-control-Apply/apply is not authorized)`,
  },
  externalId,
};

let roles: IamRoles;
let allowed: boolean;
let stops: (() => Promise<void>)[];
beforeEach(async () => {
  const principals = new Principals([{ ...key, principalArn: ana }]);
  [roles, allowed] = [new IamRoles(), true];
  roles.put({ arn: "arn:aws:iam::444455556666:role/admin", trusts: [{ principalArn: ana }] });
  const iam = await startIam({ principals, roles, allows: () => allowed });
  const sts = await startEksAndSts({ principals, roles, clusters: new EksRegister() });
  stops = [iam.stop, sts.stop];
  vi.stubEnv("AWS_ENDPOINT_URL_IAM", iam.endpoint);
  vi.stubEnv("AWS_ENDPOINT_URL_STS", sts.endpoint);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(stops.map((stop) => stop()));
});

const asAdmin = () => new EksAccounts({ awsKeys: async () => key }, { assumeRole: "admin" });
const trusting = (...trusts: readonly Trust[]) => roles.put({ arn, trusts });

test.each<[string, () => unknown, object]>([
  [
    "a role that does not exist",
    () => undefined,
    { link: "role", code: "RoleMissing", message: `the role does not exist: ${arn}` },
  ],
  [
    "a role with that name at another path",
    () => roles.put({ arn: "arn:aws:iam::444455556666:role/c1", trusts: [] }),
    { link: "role", code: "RoleMissing" },
  ],
  [
    "a role that trusts another principal",
    () => trusting({ principalArn: "AROAGONE" }, { principalArn: `${applyRole}2`, externalId }),
    {
      link: "role",
      code: "RoleTrustsOthers",
      message: `the role trusts AROAGONE, ${applyRole}2, not ${applyRole}`,
      remedy: expect.stringContaining(`"Principal": {"AWS": "${applyRole}"}`),
    },
  ],
  [
    "a role that requires another external id",
    () => trusting({ principalArn: applyRole, externalId: `${externalId}2` }),
    {
      link: "externalId",
      code: "ExternalIdOther",
      value: externalId,
      message: `the role requires the external id ${externalId}2; Starling sends ${externalId} for this Cluster`,
    },
  ],
  [
    "a role that trusts Starling",
    () => trusting({ principalArn: "arn:aws:iam::111122223333:root", externalId: "starling.111122223333.*" }),
    { link: "role", code: "RoleNotAllowed", remedy: expect.stringContaining("clusterAccounts") },
  ],
])("the check names the reason: %s", async (_what, make, found) => {
  make();
  expect(await explained(denied, asAdmin())).toMatchObject({ state: "broken", ...found });
});

test("a role that may not be read is reported as denied, with the reason", async () => {
  trusting({ principalArn: applyRole, externalId });
  allowed = false;
  const found = await explained(denied, asAdmin());
  expect(found).toMatchObject({ link: "role", code: "RoleDenied", remedy: denied.finding.remedy });
  expect(found.message).toMatch(
    /\(its trust policy was not read: arn:aws:sts::444455556666:assumed-role\/admin\/\S+ is not allowed to iam:GetRole \(User: /,
  );
  const home = await explained(
    denied,
    new EksAccounts({ awsKeys: async () => ({ ...key, secretAccessKey: "x" }) }, {}),
  );
  expect(home).toMatchObject({ code: "RoleDenied" });
});
