/** Every setting is checked before anything is made, and docs/settings.md has all of them. */
import { readFileSync } from "node:fs";
import { App } from "aws-cdk-lib";
import { describe, expect, test } from "vitest";
import { contextSettings } from "#infra/context-settings.ts";
import { readSettings } from "#infra/read-settings.ts";
import { settingNames, settingRows, settingsSchema } from "#infra/settings.ts";
import { starlingApp } from "#infra/starling-app.ts";

const shape: Readonly<Record<string, (typeof settingsSchema.shape)[keyof typeof settingsSchema.shape]>> =
  settingsSchema.shape;

describe("a setting that is wrong is refused by name, with its value and what to write", () => {
  test.each<[string, unknown, RegExp]>([
    ["installation", "", /^setting installation is ""; expected 1 to 40 letters, digits and dashes, a letter first$/],
    ["installation", "two words", /^setting installation is "two words"/],
    ["installation", "a".repeat(41), /^setting installation is "a{41}"/],
    ["clusters", "many", /^setting clusters is "many"; expected a whole number of at least 1$/],
    ["clusters", "0", /^setting clusters is "0"/],
    ["clusters", 0, /^setting clusters is 0;/],
    ["clusters", 1.5, /^setting clusters is 1.5;/],
    ["clusters", "1e3", /^setting clusters is "1e3"/],
    ["clusters", ["1"], /^setting clusters is \["1"\];/],
    ["concurrency", "9", /^setting concurrency is "9"; expected a whole number of at least 10$/],
    ["concurrency", "-10", /^setting concurrency is "-10"/],
    ["applyConcurrency", "1", /^setting applyConcurrency is "1"; expected a whole number from 2 to 1000, or no value$/],
    ["reportConcurrency", 1001, /^setting reportConcurrency is 1001;/],
    [
      "clusterRoles",
      "starling-*",
      /^setting clusterRoles is "starling-\*"; expected a path and a name, such as starling\/clusters\/\* \(the roles of Starling/,
    ],
    ["clusterRoles", "*", /^setting clusterRoles is/],
    ["clusterRoles", "*/x", /^setting clusterRoles is/],
    ["clusterRoles", "fleet*/x", /^setting clusterRoles is/],
    ["clusterRoles", "/fleet/x", /^setting clusterRoles is/],
    ["clusterRoles", "admin", /^setting clusterRoles is/],
    [
      "clusterAccounts",
      "11112222333",
      /^setting clusterAccounts is "11112222333"; expected account ids of 12 digits, sep/,
    ],
    ["clusterAccounts", "111122223333,*", /^setting clusterAccounts is/],
    ["clusterAccounts", "111122223333,", /^setting clusterAccounts is/],
    ["clusterAccounts", [111122223333], /^setting clusterAccounts is/],
    ["clusterAccounts", "", /^setting clusterAccounts is ""/],
    [
      "organization",
      "acme",
      /^setting organization is "acme"; expected the id of an organization, such as o-a1b2c3d4e5$/,
    ],
    ["organization", "*", /^setting organization is/],
    [
      "artifactReaders",
      "*",
      /^setting artifactReaders is "\*"; expected account ids of 12 digits, or whole ARNs of roles/,
    ],
    ["artifactReaders", "arn:aws:iam::111122223333:role/*", /^setting artifactReaders is/],
    ["artifactReaders", "arn:aws:iam::111122223333:root", /^setting artifactReaders is/],
    ["awsSources", "*", /^setting awsSources is "\*"; expected ARNs of repositories in ECR or CodeCommit/],
    ["awsSources", "arn:aws:s3:::bucket", /^setting awsSources is "arn:aws:s3:::bucket"/],
    ["gitAllow", 7, /^setting gitAllow is 7; expected host names, addresses and ranges, separated by commas, such as/],
    ["gitAllow", "https://git.corp.example", /^setting gitAllow is "https:/],
    [
      "sourceBuckets",
      "s3://acme",
      /^setting sourceBuckets is "s3:\/\/acme"; expected names of buckets, separated by commas, each with an account before/,
    ],
    ["sourceBuckets", "", /^setting sourceBuckets is ""/],
    ["sourceBuckets", "acme-*", /^setting sourceBuckets is "acme-\*"/],
    ["sourceBuckets", "acme..manifests", /^setting sourceBuckets is/],
    ["sourceBuckets", "1234/acme", /^setting sourceBuckets is/],
    ["sourceBuckets", "acme:Shop", /^setting sourceBuckets is/],
    ["sourceBuckets", "acme:shop+", /^setting sourceBuckets is/],
    ["sourceBuckets", ["acme", "arn:aws:s3:::acme"], /^setting sourceBuckets is/],
    [
      "personalRoles",
      "*",
      /^setting personalRoles is "\*"; expected names of roles without a path, with \* for any part but the first letter/,
    ],
    ["personalRoles", "person-*,", /^setting personalRoles is "person-\*,"/],
    ["personalRoles", "teams/sre", /^setting personalRoles is "teams\/sre"/],
    ["gitCa", "", /^setting gitCa is "", and the file cannot be read/],
    [
      "alarmTopicArn",
      "on-call",
      /^setting alarmTopicArn is "on-call"; expected the ARN of an SNS topic, such as arn:aws:sns:/,
    ],
    ["domain", "Starling", /^setting domain is "Starling"; expected a host name in small letters, such as starling/],
    ["domain", "https://starling.example.com", /^setting domain is "https:/],
    ["domainCertificate", "arn:aws:iam::111122223333:server-certificate/x", /^setting domainCertificate is "arn/],
    ["alarmTopicArn", "arn:aws:sqs:eu-west-1:111122223333:on-call", /^setting alarmTopicArn is/],
    [
      "alarmEmail",
      "on-call",
      /^setting alarmEmail is "on-call"; expected an e-mail address, such as on-call@example.com$/,
    ],
  ])("%s: %j", (name, value, message) => {
    expect(() => starlingApp({ context: { [name]: value } })).toThrow(message);
  });

  test("all wrong settings are refused in one error", () => {
    expect(() => readSettings({ clusters: "many", concurrency: "1", cluster: "3" })).toThrow(
      /^setting clusters is "many"; .*\nsetting concurrency is "1"; .*\nthere is no setting cluster; did you mean clusters\?$/,
    );
  });

  test("the error about a long value shows only its beginning", () => {
    const wrong = () => readSettings({ clusterRoles: "x".repeat(500) });
    expect(wrong).toThrow(/^setting clusterRoles is "x{76}\.\.\.; expected/);
  });
});

describe("an unknown setting", () => {
  test.each([
    ["clusterAccount", "there is no setting clusterAccount; did you mean clusterAccounts?"],
    ["gitca", "there is no setting gitca; did you mean gitCa?"],
    ["alarm-email", "there is no setting alarm-email; did you mean alarmEmail?"],
    ["colour", "there is no setting colour; docs/settings.md lists all of them"],
  ])("%s is refused, with the one that is near", (name, message) => {
    expect(() => starlingApp({ context: { [name]: "1" } })).toThrow(message);
  });

  test("a context value of the CDK's own is not taken for a setting", () => {
    const { context } = JSON.parse(readFileSync("cdk.json", "utf8")) as { context: Record<string, unknown> };
    const app = new App({
      context: {
        ...context,
        "aws:cdk:bundling-stacks": [],
        "availability-zones:account=111122223333:region=eu-west-1": ["eu-west-1a"],
        "cli-telemetry": false,
        "acknowledged-issue-numbers": [1],
        clusters: "30",
      },
    });
    expect(contextSettings(app)).toEqual({ clusters: "30" });
  });
});

describe("a zone elsewhere that is wrong is refused with its name, the field, the value and what to write", () => {
  const spoke = { name: "spoke", account: "444455556666", region: "eu-west-1", clusterNames: ["eu-*"] };
  const home = { account: "111122223333", region: "eu-central-1", table: "starling-state-Table", bucket: "blobs-1" };
  const field = (name: string) => `setting zones[0].${name} of zone spoke`;

  test.each<[string, Readonly<Record<string, unknown>>, string]>([
    [
      "an account that is a number",
      { account: 444455556666 },
      `${field("account")} is 444455556666; expected an account id`,
    ],
    [
      "an account that is too short",
      { account: "44445555" },
      `${field("account")} is "44445555"; expected an account id of 12`,
    ],
    [
      "a name as account",
      { account: "spoke" },
      `${field("account")} is "spoke"; expected an account id of 12 digits as a text`,
    ],
    ["no region", { region: "Ireland" }, `${field("region")} is "Ireland"; expected a region, such as eu-west-1`],
    ["an availability zone", { region: "eu-west-1a" }, `${field("region")} is "eu-west-1a"; expected a region`],
    [
      "no patterns",
      { clusterNames: undefined },
      `${field("clusterNames")} is missing beside account or region, because such a zone may read and`,
    ],
    [
      "an empty list of patterns",
      { clusterNames: [] },
      `${field("clusterNames")} is []; expected a list of 1 to 10 patterns`,
    ],
    [
      "a text in place of patterns",
      { clusterNames: "eu-*" },
      `${field("clusterNames")} is "eu-*"; expected a list of 1 to 10`,
    ],
    ["a pattern with capitals", { clusterNames: ["EU-*"] }, `${field("clusterNames")} is ["EU-*"]; expected a list`],
    [
      "a pattern that begins with a dash",
      { clusterNames: ["-eu*"] },
      `${field("clusterNames")} is ["-eu*"]; expected a list`,
    ],
    [
      "a pattern that ends with a dash",
      { clusterNames: ["*-"] },
      `${field("clusterNames")} is ["*-"]; expected a list`,
    ],
    [
      "a question mark, which IAM would read as a wildcard",
      { clusterNames: ["eu-?"] },
      `${field("clusterNames")} is ["eu-?"]; `,
    ],
    [
      "an underscore, which no name has",
      { clusterNames: ["eu_*"] },
      `${field("clusterNames")} is ["eu_*"]; expected a list`,
    ],
    ["a pattern that is longer than names", { clusterNames: ["e".repeat(64)] }, `${field("clusterNames")} is ["eeee`],
    [
      "one pattern twice",
      { clusterNames: ["eu-*", "eu-*"] },
      `${field("clusterNames")} is ["eu-*","eu-*"]; expected a list`,
    ],
    [
      "too little concurrency",
      { concurrency: 3 },
      `${field("concurrency")} is 3; expected a whole number of executions from 4`,
    ],
    [
      "a topic that is none",
      { alarmTopicArn: "on-call" },
      `${field("alarmTopicArn")} is "on-call"; expected the ARN of an SNS`,
    ],
    [
      "a topic of another region",
      { alarmTopicArn: "arn:aws:sns:us-east-1:444455556666:on-call" },
      "zone spoke has alarmTopicArn arn:aws:sns:us-east-1:444455556666:on-call of region us-east-1, but its alarm is in eu-west-1",
    ],
    [
      "a region of another partition",
      { region: "cn-north-1" },
      "zone spoke has region cn-north-1, which is of another partition of AWS than region eu-central-1 of setting home; choose",
    ],
    [
      "the account and region of the installation",
      { account: "111122223333", region: "eu-central-1" },
      "zone spoke has account 111122223333 and region eu-central-1, where Starling itself is (setting home); leave account and",
    ],
    [
      "a range that is too large",
      { vpc: { cidr: "10.0.0.0/8" } },
      `${field("vpc.cidr")} is "10.0.0.0/8"; expected an IPv4`,
    ],
  ])("%s", (_, wrong, message) => {
    expect(() => readSettings({ home, zones: [{ ...spoke, ...wrong }] })).toThrow(message);
  });

  test.each<[string, Readonly<Record<string, unknown>>, string]>([
    [
      "without setting home",
      { zones: [spoke] },
      "setting zones: zone spoke is in another account or region (444455556666), and setting home is missing; expected an object",
    ],
    [
      "with a setting home that is no object",
      { home: "eu-central-1", zones: [spoke] },
      'setting home is "eu-central-1"; expected an',
    ],
    ["without a table", { home: { ...home, table: undefined } }, "setting home.table is missing; expected the name"],
    [
      "with a number as account of home",
      { home: { ...home, account: 111122223333 } },
      "setting home.account is 111122223333; expected an account id of 12 digits as a text",
    ],
    [
      "with the ARN of the table as JSON",
      { home: JSON.stringify({ ...home, table: "arn:aws:dynamodb:eu-central-1:111122223333:table/starling" }) },
      'setting home.table is "arn:aws:dynamodb:eu-central-1:111122223333:table/starling"; expected the name of the',
    ],
    [
      "with a bucket that no bucket can be",
      { home: { ...home, bucket: "Blobs" } },
      'setting home.bucket is "Blobs"; expected the name of the bucket of Starling, output BlobsName of the state',
    ],
    [
      "with a region of home",
      { home: { ...home, region: "eu" } },
      'setting home.region is "eu"; expected a region, such',
    ],
    [
      "with a misspelt field",
      { home: { ...home, tabel: "x" } },
      "setting home has no field tabel; did you mean table?",
    ],
    [
      "with JSON that ends too early",
      { home: '{"account":' },
      String.raw`setting home is "{\"account\":"; expected an object such`,
    ],
    [
      "with another table than the functions have",
      { home, table: "restored", zones: [spoke] },
      "setting home has table starling-state-Table, but setting table is restored; name the same table in both",
    ],
    [
      "with another bucket than the functions have",
      { home, bucket: "other-blobs", zones: [spoke] },
      "setting home has bucket blobs-1, but setting bucket is other-blobs; name the same bucket in both",
    ],
    [
      "twice by one name",
      { home, zones: [spoke, spoke] },
      "setting zones[1].name of zone spoke is spoke, which zones[0] has, too; give each zone",
    ],
    [
      "with a quota of its own in the account of the installation",
      { home, zones: [{ name: "fixed", vpc: {}, concurrency: 10 }] },
      "setting zones[0].concurrency of zone fixed is 10, and only a zone with account or region has its own; leave it out",
    ],
  ])("%s", (_, wrong, message) => expect(() => readSettings(wrong)).toThrow(message));

  test("a zone may be in another region only, or in another account only", () => {
    const zones = [
      { name: "near", region: "eu-west-1", clusterNames: ["*"] },
      { name: "beside", account: "444455556666", clusterNames: ["*"] },
    ];
    expect(() => readSettings({ home, zones })).not.toThrow();
    expect(() => readSettings({ home: JSON.stringify(home), zones: JSON.stringify(zones) })).not.toThrow();
  });
});

describe("a zone that is wrong is refused with its name, the field, the value and what to write", () => {
  const fixed = { name: "fixed", vpc: {} };
  const spoke = { name: "spoke", subnets: ["subnet-0a1b2c3d4e5f60718"], securityGroups: ["sg-0a1b2c3d4e5f60718"] };
  const range = "expected an IPv4 range from /16 to /24 that a network may have and that begins at its first address";

  test.each<[string, unknown, string]>([
    ["a text that is no JSON", "fixed", 'setting zones is "fixed", which is no JSON ('],
    ["no list", { fixed: {} }, 'setting zones is {"fixed":{}}; expected a list of at most 10 zones as JSON, each an'],
    ["JSON that is no list", '{"name":"fixed"}', 'setting zones is {"name":"fixed"}; expected a list of at most 10'],
    ["an entry that is no zone", ["fixed"], 'setting zones[0] is "fixed"; expected an object such as {"name": "fixed"'],
    ["no name", [{ vpc: {} }], "setting zones[0].name is missing; expected a name of at most 18 small letters"],
    ["a number as name", [{ ...fixed, name: 7 }], "setting zones[0].name is 7; expected a name of at most 18 small"],
    ["home", [{ ...fixed, name: "home" }], 'setting zones[0].name of zone home is "home"; expected a name of at most'],
    ["capitals", [{ ...fixed, name: "Fixed" }], 'setting zones[0].name of zone Fixed is "Fixed"; expected a name'],
    ["no network", [{ name: "fixed" }], "setting zones[0] of zone fixed has no network; add vpc (a new network, such"],
    [
      "a new network and an existing one",
      [spoke, { ...spoke, ...fixed }],
      "setting zones[1].subnets of zone fixed stands beside vpc, which makes subnets of its own; leave one of them out",
    ],
    [
      "subnets without security groups",
      [{ name: "spoke", subnets: spoke.subnets }],
      "setting zones[0].securityGroups of zone spoke is missing beside subnets; add security groups of the same VPC",
    ],
    [
      "security groups of a new network",
      [{ ...fixed, securityGroups: spoke.securityGroups }],
      "setting zones[0].securityGroups of zone fixed stands beside vpc, which gets a security group of its own",
    ],
    [
      "the id of something else",
      [{ ...spoke, subnets: ["subnet-0a1b2c3d4e5f60718", "vpc-0a1b2c3d4e5f60718"] }],
      'setting zones[0].subnets[1] of zone spoke is "vpc-0a1b2c3d4e5f60718"; expected an id such as subnet-0a1b2c',
    ],
    [
      "a text in place of a list",
      [{ ...spoke, securityGroups: "sg-0a1b2c3d4e5f60718" }],
      'setting zones[0].securityGroups of zone spoke is "sg-0a1b2c3d4e5f60718"; expected a list of 1 to 5 ids of sec',
    ],
    ["no subnet", [{ ...spoke, subnets: [] }], "setting zones[0].subnets of zone spoke is []; expected a list of 1 to"],
    [
      "a subnet twice",
      [{ ...spoke, subnets: [...spoke.subnets, ...spoke.subnets] }],
      "setting zones[0].subnets of zone spoke is",
    ],
    [
      "a range that is too large",
      [{ name: "fixed", vpc: { cidr: "10.0.0.0/8" } }],
      `setting zones[0].vpc.cidr of zone fixed is "10.0.0.0/8"; ${range}`,
    ],
    [
      "a range of an address that does not exist",
      [{ name: "fixed", vpc: { cidr: "10.300.0.0/24" } }],
      `setting zones[0].vpc.cidr of zone fixed is "10.300.0.0/24"; ${range}`,
    ],
    [
      "a range that begins in its middle",
      [{ name: "fixed", vpc: { cidr: "10.250.0.128/24" } }],
      `setting zones[0].vpc.cidr of zone fixed is "10.250.0.128/24"; ${range}`,
    ],
    ...["127.0.0.0/24", "169.254.0.0/24", "0.0.0.0/16", "224.0.0.0/16", "010.250.0.0/24"].map(
      (cidr): [string, unknown, string] => [
        `the range ${cidr}`,
        [{ ...fixed, vpc: { cidr } }],
        `setting zones[0].vpc.cidr of zone fixed is "${cidr}"; ${range}`,
      ],
    ),
    [
      "eleven zones",
      Array.from({ length: 11 }, (_, index) => ({ ...fixed, name: `z${index}` })),
      "setting zones has 11 zones, and at most 10 fit into the control stack; leave some out, or let one zone reach more",
    ],
    [
      "too many gateways",
      [{ name: "fixed", vpc: { natGateways: 3 } }],
      "setting zones[0].vpc.natGateways of zone fixed is 3; expected 1 or 2, or no value (1)",
    ],
    [
      "a network that is none",
      [{ ...fixed, vpc: true }],
      "setting zones[0].vpc of zone fixed is true; expected an obj",
    ],
    [
      "a part of a cluster",
      [{ ...fixed, clusters: 1.5 }],
      "setting zones[0].clusters of zone fixed is 1.5; expected a whole number of clusters from 1 to 999999",
    ],
    [
      "a field that does not exist",
      [{ ...fixed, subnet: "subnet-0a1b2c3d4e5f60718" }],
      "setting zones[0] of zone fixed has no field subnet; did you mean subnets?",
    ],
    [
      "a field of the network that does not exist",
      [{ name: "fixed", vpc: { colour: "red" } }],
      "setting zones[0].vpc of zone fixed has no field colour; the fields are cidr, natGateways",
    ],
    [
      "one name twice",
      [fixed, fixed],
      "setting zones[1].name of zone fixed is fixed, which zones[0] has, too; give each zone a name of",
    ],
    [
      "two names that differ by a dash",
      [fixed, { name: "fi-xed", vpc: {} }],
      "setting zones[1].name of zone fi-xed is fi-xed, and differs from fixed by dashes only; choose another name",
    ],
    [
      "one network under two names",
      [spoke, { ...spoke, name: "other" }],
      "setting zones[1].subnets of zone other are those of zone spoke, with the same securityGroups, so that both",
    ],
    [
      "a VPC that is no id",
      [{ ...fixed, vpcs: ["spoke"] }],
      'setting zones[0].vpcs[0] of zone fixed is "spoke"; expected an id such as vpc-0a1b2c3d4e5f60718',
    ],
    [
      "one VPC in two zones",
      [
        { ...fixed, vpcs: ["vpc-0a1b2c3d"] },
        { ...spoke, vpcs: ["vpc-1a1b2c3d", "vpc-0a1b2c3d"] },
      ],
      "setting zones[1].vpcs of zone spoke has vpc-0a1b2c3d, which zone fixed has, too; leave it to the zone that",
    ],
    [
      "a role that is no ARN",
      [{ ...fixed, role: "starling-fixed" }],
      'setting zones[0].role of zone fixed is "starling-fixed"; expected the ARN of a role of Starling\'s account',
    ],
    [
      "a role of a zone elsewhere",
      [{ name: "far", region: "us-east-1", clusterNames: ["us-*"], role: "arn:aws:iam::111122223333:role/one" }],
      "setting zones[0].role of zone far is arn:aws:iam::111122223333:role/one, and the role of a zone with account or",
    ],
    [
      "one role for two zones",
      [
        { ...fixed, role: "arn:aws:iam::111122223333:role/one" },
        { ...spoke, role: "arn:aws:iam::111122223333:role/one" },
      ],
      "setting zones[1].role of zone spoke is arn:aws:iam::111122223333:role/one, which zone fixed has, too; give each",
    ],
    [
      "more VPCs than fit into the environment of a function",
      [
        { ...fixed, vpcs: Array.from({ length: 50 }, (_each, index) => `vpc-0a1b2c${index + 10}`) },
        { ...spoke, vpcs: ["vpc-1a1b2c3d"] },
      ],
      "setting zones has 51 VPCs, and at most 50 fit into all zones together; name the others in spec.access.zonesByVpc",
    ],
    [
      "more clusters than the fleet has",
      [
        { ...fixed, clusters: 80 },
        { ...spoke, clusters: 30 },
      ],
      "setting zones has 110 clusters (zone fixed reaches 80, zone spoke reaches 30), but setting clusters is 100; raise",
    ],
  ])("%s", (_, zones, message) => {
    const asText = typeof zones === "string" ? zones : JSON.stringify(zones);
    for (const given of [zones, asText]) {
      expect(() => readSettings({ zones: given })).toThrow(
        expect.objectContaining({ message: expect.stringContaining(message) }),
      );
    }
  });

  test.each(["applyRole", "discoverRole"])("the role of setting %s is refused as that of a zone", (setting) => {
    const role = "arn:aws:iam::111122223333:role/one";
    expect(() => readSettings({ zones: [spoke, { ...fixed, role }], [setting]: role })).toThrow(
      `setting zones[1].role of zone fixed is ${role}, which setting ${setting} has, too; name another role, because`,
    );
  });

  test("each problem of each zone is in the error", () => {
    const zones = [{ name: "fixed", vpc: { cidr: "any", natGateways: 0 } }, { name: "spoke" }, { colour: "red" }];
    const lines = (() => {
      try {
        return readSettings({ zones, clusters: "many" });
      } catch (error) {
        return (error as Error).message.split("\n");
      }
    })();
    expect(lines).toEqual([
      expect.stringContaining("setting clusters is"),
      expect.stringContaining("setting zones[0].vpc.cidr of zone fixed is"),
      expect.stringContaining("setting zones[0].vpc.natGateways of zone fixed is 0"),
      expect.stringContaining("setting zones[1] of zone spoke has no network"),
      expect.stringContaining("setting zones[2].name is missing"),
      expect.stringContaining("setting zones[2] has no field colour"),
    ]);
  });

  test("zones that are right are taken from JSON and from values alike", () => {
    const role = "arn:aws-us-gov:iam::111122223333:role/path/starling-spoke";
    const zones = [
      { ...fixed, clusters: 20 },
      { ...spoke, role },
    ];
    const desired = [
      { ...fixed, clusters: 20, vpc: { cidr: "10.250.0.0/24", natGateways: 1 } },
      { ...spoke, role },
    ];
    expect(readSettings({ zones }).zones).toEqual(desired);
    expect(readSettings({ zones: JSON.stringify(zones) }).zones).toEqual(desired);
  });
});

test("a text on the command line and a value in cdk.json mean the same", () => {
  const texts = {
    clusters: "30",
    clusterAccounts: "111122223333, 444455556666",
    gitAllow: "git.corp.example,10.20.0.0/16",
    personalRoles: "AWSReservedSSO_*, person-*",
  };
  const values = {
    clusters: 30,
    clusterAccounts: ["111122223333", "444455556666"],
    gitAllow: ["git.corp.example", "10.20.0.0/16"],
    personalRoles: ["AWSReservedSSO_*", "person-*"],
  };
  expect(readSettings(texts)).toEqual(readSettings(values));
  expect(readSettings(texts)).toMatchObject(values);
});

test("the defaults suit a small installation in a new account, without other accounts", () => {
  expect(readSettings({})).toEqual({
    installation: "starling",
    clusters: 100,
    sourceBuckets: [],
    concurrency: 10,
    oldestRevisionDays: 14,
    clusterAccounts: [],
    artifactReaders: [],
    awsSources: [],
    eventBus: "default",
    gitAllow: [],
    guard: { additions: 100, deletions: 0, objects: "50%", per: "24h" },
    personalRoles: ["AWSReservedSSO_*"],
    zones: [],
  });
});

test("readers of artifacts are refused together with a bucket whose policy is not the stack's", () => {
  expect(() => readSettings({ artifactReaders: "111122223333", bucket: "blobs" })).toThrow(
    "setting artifactReaders cannot change the policy of bucket blobs; leave it out, and let the policy of that bucket",
  );
});

test("a guard may be JSON, and may be none", () => {
  const whole = { additions: "10%", deletions: 0, objects: "50%", per: "24h" };
  expect(readSettings({ guard: '{"additions":"10%"}' }).guard).toEqual(whole);
  expect(readSettings({ guard: { additions: "10%" } }).guard).toEqual(whole);
  expect(readSettings({ guard: "none" }).guard).toBe("none");
});

test.each(["no", "{", '{"deletes":1}', '{"additions":"many"}'])(
  "a guard of %s is refused with what is expected",
  (guard) => {
    expect(() => readSettings({ guard })).toThrow(
      `setting guard is ${JSON.stringify(guard)}; expected "none", or a guard such as {"additions": "10%"`,
    );
  },
);

test("a bucket that is Starling's own cannot be read by Sources", () => {
  expect(() => readSettings({ bucket: "acme-state", sourceBuckets: "acme-manifests,acme-state:shop" })).toThrow(
    "setting sourceBuckets has acme-state, which setting bucket makes Starling's own; name other buckets",
  );
});

test("docs/settings.md has the table of all settings", () => {
  const documented = readFileSync("docs/settings.md", "utf8");
  expect(documented).toContain(tableOfSettings());
});

/** The table for docs/settings.md. Copy it there when a setting has changed. */
function tableOfSettings(): string {
  const rows = settingNames.map((name) => {
    const row = settingRows.get(shape[name] as object as never);
    if (row === undefined) throw new Error(`${name} says nothing of itself; register it in infra/settings.ts`);
    return `| \`${name}\` | ${row.type} | ${defaultOf(name)} | ${row.does} |`;
  });
  return ["| setting | type | default | what it does |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

function defaultOf(name: string): string {
  const value = (readSettings({}) as Readonly<Record<string, unknown>>)[name];
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return "none";
  return `\`${typeof value === "object" ? JSON.stringify(value) : String(value)}\``;
}
