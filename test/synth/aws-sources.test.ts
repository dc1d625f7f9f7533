import { describe, expect, test } from "vitest";
import { awsGrant, awsPlace, isGranted } from "#shared/source/aws-place.ts";
import { mayDo, statementsOf } from "#test/support/policy-guard.ts";
import { folders } from "#test/synth/grants.ts";
import { functionNamed, listOf, ofType, synthesizeTemplates } from "#test/synth/synthesized.ts";

const ecr = "arn:aws:ecr:eu-west-1:111122223333:repository";
const codeCommit = "arn:aws:codecommit:eu-west-1:111122223333:fleet";
const connection = "arn:aws:codeconnections:eu-west-1:111122223333:connection/0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0";
const awsSources = `${ecr}/shop/*:shop, ${codeCommit}, ${connection}`;

const services = /^(ecr|codecommit|codeconnections|codestar-connections):/;
const ofAws = (resources: Parameters<typeof statementsOf>[0], folder: string) =>
  statementsOf(resources, folder).filter(({ Action }) => listOf(Action).some((action) => services.test(action)));

describe("the setting awsSources", () => {
  test("the role of resolve may pull what the setting names, and nothing else", async () => {
    const { resources } = await synthesizeTemplates({ awsSources });
    const statements = ofAws(resources, "resolve");
    const pulled = ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer", "ecr:ListImages"];
    const may = (action: string, resource: string) => mayDo({ action, resource }, statements);
    for (const action of pulled) {
      expect([may(action, `${ecr}/shop/app`), may(action, `${ecr}/other/app`)]).toEqual([true, false]);
    }
    expect(may("ecr:GetAuthorizationToken", "*")).toBe(true);
    expect([may("codecommit:GitPull", codeCommit), may("codecommit:GitPull", `${codeCommit}-2`)]).toEqual([
      true,
      false,
    ]);
    expect(may("codeconnections:UseConnection", connection)).toBe(true);
    const actions = new Set(statements.flatMap(({ Action }) => listOf(Action)));
    const needed = [...pulled, "ecr:GetAuthorizationToken", "codecommit:GitPull", "codeconnections:UseConnection"];
    expect([...actions].sort()).toEqual(needed.sort());
    // The function decides the same by the same entries, and knows the namespaces.
    const { Variables } = functionNamed(resources, "resolve").Properties.Environment as {
      Variables: Record<string, string>;
    };
    const grants = (Variables.STARLING_AWS_SOURCES ?? "").split(",").map(awsGrant);
    const place = awsPlace("oci://111122223333.dkr.ecr.eu-west-1.amazonaws.com/shop/app");
    if (place === undefined) throw new Error("the address is one of ECR");
    expect([isGranted(grants, place, "shop"), isGranted(grants, place, "blog")]).toEqual([true, false]);
  });

  test("without the setting no role may read anything of these services, and with it no other role", async () => {
    for (const [context, most] of [
      [{}, []],
      [{ awsSources }, ["resolve"]],
    ] as const) {
      const { resources } = await synthesizeTemplates(context);
      expect(ofType(resources, "AWS::Lambda::Function").length).toBeGreaterThan(folders.length - 1);
      expect(folders.filter((folder) => ofAws(resources, folder).length > 0)).toEqual([...most]);
    }
  });
});
