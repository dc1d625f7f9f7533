/**
 * Follows docs/tasks/reach-private-clusters.md: its deployments as far as the templates, and its commands against a local machine with
 * the zones of the page.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Authenticator } from "@starling/embedded-apiserver";
import { expect, test } from "vitest";
import { eksAuthenticator } from "#local/aws/eks/eks-authenticator.ts";
import { clusterAdminPolicy } from "#local/aws/eks/eks-register.ts";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { roleArnOf } from "#local/machine/deployment.ts";
import type { LocalEks } from "#local/machine/machine.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { startWorld } from "#test/support/e2e-world.ts";
import { embeddedFleetFor } from "#test/support/fleet.ts";
import { commandsOf, pageBlocks } from "#test/support/page-commands.ts";
import { openWorldCli } from "#test/support/world-cli.ts";

const blocks = pageBlocks("tasks/reach-private-clusters.md");
const commands = blocks.filter(({ info }) => info.startsWith("sh")).flatMap(commandsOf);
const deployments = commands.flatMap((command) => {
  const [, zones] = /^npx cdk deploy starling-control -c 'zones=(.+)'$/.exec(command) ?? [];
  return zones === undefined ? [] : [zones];
});
const document = blocks.find(({ info }) => info === "yaml")?.text ?? "";
const arn = "arn:aws:eks:eu-west-1:444455556666:cluster/prod-eu-1";
const role = "arn:aws:iam::444455556666:role/starling/clusters/prod-eu-1";

test("the deployments of the page make the outputs that it names, with an address for a zone with vpc", async () => {
  const outputs = [];
  for (const zones of deployments) {
    const stacks = await synthesize({ zones });
    outputs.push(Object.keys(stacks["starling-control"]?.Outputs ?? {}).filter((name) => name.startsWith("Zone")));
  }
  expect(outputs).toEqual([["ZoneFixedRole", "ZoneFixedAddresses"], ["ZoneSpokeRole"]]);
});

test("a cluster whose role trusts only the role of the zone is ok when it names the zone, and broken in home", {
  timeout: 240_000,
}, async () => {
  let eks: LocalEks | undefined;
  const asEks: Authenticator = (token, cluster) =>
    eks === undefined
      ? Promise.resolve(undefined)
      : eksAuthenticator({ ...eks, stsEndpoint: eks.endpoint, arnOf: () => arn })(token, cluster);
  const [zones = ""] = deployments;
  const world = await startWorld({ faults: quiet, target: embeddedFleetFor(asEks), zones });
  const folder = mkdtempSync(join(tmpdir(), "starling-page-"));
  const cli = openWorldCli(world);
  try {
    const { machine, fleet } = world;
    eks = machine.eks;
    const { server, caData } = await fleet.add("prod-eu-1");
    const worker = machine.plan.functions.find(({ functionName }) => functionName === "apply-fixed");
    if (worker === undefined) throw new Error("zone fixed has no workers");
    const trusts = [{ principalArn: roleArnOf(worker), externalId: `${eks.installation}/prod-eu-1` }];
    eks.roles.put({ arn: role, trusts });
    eks.clusters.put({
      ...{ arn, name: "prod-eu-1", accountId: "444455556666", region: "eu-west-1", status: "ACTIVE", version: "1.36" },
      ...{ endpoint: server, caData, tags: {}, createdAt: new Date("2026-01-01T00:00:00Z") },
      accessEntries: [
        {
          principalArn: role,
          kubernetesGroups: [],
          username: "starling:{{SessionName}}",
          policies: [clusterAdminPolicy],
        },
      ],
    });
    const inZone = join(folder, "prod-eu-1.yaml");
    writeFileSync(inZone, document);
    const inHome = join(folder, "home.yaml");
    writeFileSync(inHome, document.replace("zone: fixed, ", ""));
    const check =
      commands
        .find((command) => command.startsWith("starling cluster check"))
        ?.split(" ")
        .slice(1) ?? [];
    expect(await cli.run(["apply", "-f", inHome])).toMatchObject({ code: 0 });
    expect(await cli.run(check)).toMatchObject({ code: 1, out: expect.stringMatching(/role +broken/) });
    expect(await cli.run(["apply", "-f", inZone])).toMatchObject({ code: 0 });
    expect(await cli.run(check)).toMatchObject({ code: 0, out: expect.stringMatching(/ok +11 links/) });
  } finally {
    cli.close();
    rmSync(folder, { recursive: true, force: true });
    await world.close();
  }
});
