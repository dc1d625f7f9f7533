/** A user's own CDK app, in a folder of its own, installs Starling and uses existing resources. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { replacedOrDeleted, type StackTemplate, type StackTemplates } from "#test/synth/replaced.ts";
import { synthesizeTemplates } from "#test/synth/synthesized.ts";

const folder = mkdtempSync(join(tmpdir(), "starling-own-app-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

mkdirSync(join(folder, "node_modules"));
symlinkSync(resolve("."), join(folder, "node_modules/starling"));
symlinkSync(resolve("node_modules/aws-cdk-lib"), join(folder, "node_modules/aws-cdk-lib"));
writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "delivery", private: true, type: "module" }));

/** Templates by the names of their files. */
async function synthesized(name: string, source: string): Promise<Readonly<Record<string, StackTemplate>>> {
  const file = join(folder, `${name}.ts`);
  const outdir = join(folder, `${name}.out`);
  writeFileSync(file, source);
  await promisify(execFile)(process.execPath, [file], {
    cwd: folder,
    env: { CDK_OUTDIR: outdir, CDK_CONTEXT_JSON: JSON.stringify({ "aws:cdk:bundling-stacks": [] }) },
  });
  const files = readdirSync(outdir).filter((each) => each.endsWith(".template.json"));
  return Object.fromEntries(files.map((each) => [each, JSON.parse(readFileSync(join(outdir, each), "utf8"))]));
}

function named(templates: Readonly<Record<string, StackTemplate>>, part: string): StackTemplate {
  const found = Object.entries(templates).find(([file]) => file.includes(part));
  if (found === undefined) throw new Error(`${Object.keys(templates).join(", ")}: none is of ${part}`);
  return found[1];
}

const idsAndTypes = ({ Resources }: StackTemplate) =>
  Object.entries(Resources)
    .map(([id, { Type }]) => `${Type} ${id}`)
    .sort();

describe("a user's own CDK app", () => {
  test("a user's app makes the same installation as Starling's app, with resources of its own where it gives them", async () => {
    const templates = await synthesized(
      "app",
      `
      import { App, Stack } from "aws-cdk-lib";
      import { AccountRootPrincipal, Role } from "aws-cdk-lib/aws-iam";
      import { Topic } from "aws-cdk-lib/aws-sns";
      import { Starling, type StarlingProps } from "starling/infra";

      const app = new App();
      const own = new Stack(app, "own");
      const topic = new Topic(own, "OnCall");
      const settings: StarlingProps = { clusters: 30, concurrency: "1000", alarmTopicArn: topic.topicArn };
      const starling = new Starling(app, "Delivery", settings);
      const watcher = new Role(starling.control, "Watcher", { assumedBy: new AccountRootPrincipal() });
      watcher.addManagedPolicy(starling.control.policies.viewer);
      app.synth();
      `,
    );
    const [state, control] = [named(templates, "starling-state"), named(templates, "starling-control")];
    const made = await synthesizeTemplates({ clusters: "30", concurrency: "1000" });
    expect(idsAndTypes(state)).toEqual(idsAndTypes(made.state.toJSON() as StackTemplate));
    const others = idsAndTypes(control).filter((each) => !each.startsWith("AWS::IAM::Role Watcher"));
    expect(others).toEqual(idsAndTypes(made.control.toJSON() as StackTemplate));
    const before = JSON.parse(readFileSync("test/synth/fixtures/version-before.json", "utf8")) as StackTemplates;
    expect(replacedOrDeleted(before, { "starling-state": state, "starling-control": control })).toEqual([]);

    const watcher = Object.values(control.Resources).find(
      ({ Type, Properties }) => Type === "AWS::IAM::Role" && Properties?.ManagedPolicyArns !== undefined,
    );
    expect(JSON.stringify(watcher?.Properties?.ManagedPolicyArns)).toMatch(
      /^\[\{"Ref":"WiringApiEntryPoliciesViewer\w+"\}\]$/,
    );
    const alarms = Object.values(control.Resources).filter(({ Type }) => Type === "AWS::CloudWatch::Alarm");
    expect(alarms.length).toBeGreaterThan(10);
    for (const { Properties } of alarms) expect(JSON.stringify(Properties?.AlarmActions)).toContain("OnCall");
  });

  test("a user's app gets the same error for a wrong property as an operator for a wrong setting", async () => {
    const wrong = synthesized(
      "wrong",
      `
      import { App } from "aws-cdk-lib";
      import { Starling } from "starling/infra";
      const settings = { clusters: 0, cluster: 3 };
      new Starling(new App(), "Delivery", settings as object);
      `,
    );
    await expect(wrong).rejects.toThrow(
      /setting clusters is 0; expected a whole number of at least 1\n.*there is no setting cluster; did you mean clusters\?/s,
    );
  });
});
