/**
 * A zone in another account and region: every request is counted by the key and the region that signed it. Its workers use their own
 * role for what is theirs, and sessions of the data role for what `home` stores.
 */

import { afterAll, beforeAll, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { beginColoredWeb, coloredFiles } from "#test/support/colored-web.ts";
import { startWorld, type World } from "#test/support/e2e-world.ts";
import { openWorldCli } from "#test/support/world-cli.ts";

const [account, region] = ["444455556666", "eu-north-1"];
const [home, homeRegion] = ["000000000000", "us-east-1"];
const dataRole = `arn:aws:iam::${home}:role/starling-data-far`;
const workerRole = `arn:aws:iam::${account}:role/starling-zone-far`;
const own = `arn:aws:sts::${account}:assumed-role/starling-zone-far/apply-far`;
const data = `arn:aws:sts::${home}:assumed-role/starling-data-far/starling-far`;
const subnets = { subnets: ["subnet-0a1b2c3d4e5f60718"], securityGroups: ["sg-0a1b2c3d4e5f60718"] };
let world: World;
/** `<principal> <service> <region> <thing>`, as the services saw them. */
const seen = new Set<string>();
/** The queues whose attributes the data role asked for, as `<region> <queue>`. */
const countedByData = new Set<string>();
/** The access keys of sessions of the data role. */
const dataKeys = new Set<string>();
let dataWrites = 0;
/** Lines that the zone's workers logged about refused sessions. */
const refusals: string[] = [];

beforeAll(async () => {
  world = await startWorld({
    faults: quiet,
    rate: 30,
    onLine: (name, line) => {
      if (name === "apply-far" && line.includes("DataRoleDenied")) refusals.push(line);
    },
    zones: JSON.stringify([{ name: "far", account, region, clusterNames: ["eu-*"], ...subnets }]),
  });
  world.machine.proxy.intercept({
    after: ({ service, operation, request, http }, { status }) => {
      if (status >= 300) return;
      const [, key = "", signed] = /Credential=([^/]+)\/\d+\/([^/]+)\//.exec(String(http.headers.authorization)) ?? [];
      const principal = world.machine.principals.find(key)?.principalArn ?? "";
      if (principal === data) {
        dataKeys.add(key);
        if (/^(Put|Update|Transact|BatchWrite)/.test(operation)) dataWrites++;
      }
      const queue = /To(Render|Report|Apply)|-(apply-slow|apply)/
        .exec(String(request.QueueUrl))
        ?.slice(1)
        .find((name) => name);
      if (principal === data && operation === "GetQueueAttributes") countedByData.add(`${signed} ${queue}`);
      const isFar = String(request.QueueUrl).includes("zone-far");
      seen.add(`${principal} ${service} ${signed}${queue === undefined ? "" : ` ${isFar ? "far" : "home"} ${queue}`}`);
    },
  });
});
afterAll(() => world.close());

const of = (principal: string) =>
  [...seen].flatMap((each) => (each.startsWith(`${principal} `) ? [each.slice(principal.length + 1)] : [])).sort();
const assumptions = () =>
  world.machine.eks.calls().filter(({ operation, principalArn }) => operation === "AssumeRole" && principalArn === own);

test("clusters in another account and region come into sync, with the data role for data only and the own role for own things only", async () => {
  await world.join({ name: "c1" }, { name: "eu-1", zone: "far" }, { name: "eu-2", zone: "far" });
  await beginColoredWeb(world, { maxConcurrent: 2, maxUnreachable: "70%", progressDeadline: "3m" });
  const ofData = of(data);
  expect(ofData.filter((each) => !each.includes(` ${homeRegion}`))).toEqual([]);
  expect(ofData).toEqual(expect.arrayContaining(["dynamodb us-east-1", "s3 us-east-1", "sqs us-east-1 home Report"]));
  expect(ofData.filter((each) => each.startsWith("sqs ") && !/ home (Report|Render)$/.test(each))).toEqual([]);
  // Its own role asks for no row and no blob, and for its own queues in its own region only.
  expect(of(own).filter((each) => !/^sqs eu-north-1 far /.test(each))).toEqual([]);
  for (const call of assumptions()) expect(call.region).toBe(region);
  expect(assumptions().length).toBeGreaterThan(0);
  const planner = [...seen].filter((each) => / far (apply|apply-slow)$/.test(each) && !each.startsWith(own));
  expect(planner.length).toBeGreaterThan(0);
  expect(planner.filter((each) => !each.includes(` sqs ${region} `))).toEqual([]);
});

test("the check of the zone goes the way to the queues of home, with the data role, beside that to its own", async () => {
  const cli = openWorldCli(world);
  const { out } = await cli.run("zone check far").finally(() => cli.close());
  expect(out).toMatch(/^sqs +ok +/m);
  expect(out).toMatch(new RegExp(`^sqs ${homeRegion} +ok +`, "m"));
  expect(out).toMatch(new RegExp(`^dynamodb ${homeRegion} +ok +`, "m"));
  expect(out).toMatch(/^sts +ok +/m);
  expect([...countedByData]).toEqual([`${homeRegion} Report`]);
});

test("a Cluster whose name the zone does not serve is refused, and the zones show where they are", async () => {
  await expect(world.join({ name: "us-1", zone: "far" })).rejects.toThrow(/serves clusters named eu-\*, and not us-1/);
  expect(await world.session.call("GET", "/v1/zones")).toMatchObject({
    items: [
      { metadata: { name: "home" } },
      { metadata: { name: "far" }, account, region, clusterNames: ["eu-*"], workers: { version: expect.any(String) } },
    ],
  });
});

test("a session that ends is renewed, and the workers go on", async () => {
  const before = { keys: dataKeys.size, assumptions: assumptions().length };
  for (const key of dataKeys) world.machine.principals.expire(key);
  const commit = await world.push("shop", coloredFiles("green"));
  await world.untilInSync("web", commit);
  expect(dataKeys.size).toBeGreaterThan(before.keys);
  expect(assumptions().length).toBeGreaterThan(before.assumptions);
});

test("while the data role refuses the workers they write nothing, their clusters are unreachable, and all catch up afterwards", async () => {
  world.machine.eks.roles.put({ arn: dataRole, trusts: [] });
  for (const key of dataKeys) world.machine.principals.expire(key);
  dataWrites = 0;
  const commit = await world.push("shop", coloredFiles("blue"));
  const left = await world.waitFor("the stage passes without the zone", async () => {
    const group = await world.group("web");
    return group.status.state === "Degraded" && group.status.revision?.endsWith(commit) && group;
  });
  expect(left.status.clusters).toMatchObject({ ready: 1, unreachable: 2, failed: 0 });
  const away = (await world.targets("web")).filter(({ state }) => state !== "Succeeded");
  expect(away.map(({ state, reason }) => `${state} ${reason?.split(":")[0]}`)).toEqual([
    "Unreachable ZoneDown",
    "Unreachable ZoneDown",
  ]);
  expect(dataWrites).toBe(0);
  expect(refusals.length).toBeGreaterThan(0);
  expect(refusals[0]).toContain("message goes back to the queue");
  expect(refusals[0]).toContain(`zone far may not read and write the rows of home: STS refused role ${dataRole}`);
  world.machine.eks.roles.put({ arn: dataRole, trusts: [{ principalArn: workerRole }] });
  await world.untilInSync("web", commit);
  expect(dataWrites).toBeGreaterThan(0);
});
