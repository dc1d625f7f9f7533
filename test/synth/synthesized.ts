import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { starlingApp } from "#infra/starling-app.ts";

export interface Resource {
  readonly id: string;
  readonly Type: string;
  readonly Properties: Readonly<Record<string, unknown>>;
  readonly DeletionPolicy?: string;
  readonly UpdateReplacePolicy?: string;
}

export interface Statement {
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export interface Synthesized {
  /** Folder with the assembly; gone unless the code was bundled, and then to be removed by the caller. */
  readonly assembly: string;
  readonly state: Template;
  readonly control: Template;
  readonly resources: readonly Resource[];
}

/**
 * The app as `cdk synth` makes it, checks of cdk-nag included: a violation throws.
 * @param options.bundle whether esbuild makes the functions' code, which takes some seconds; without, only templates.
 */
export function synthesize(options: {
  readonly bundle: "bundle" | "templates";
  readonly context?: Readonly<Record<string, unknown>>;
}): Synthesized {
  const { context } = JSON.parse(readFileSync("cdk.json", "utf8")) as { context: Record<string, unknown> };
  const assembly = mkdtempSync(join(tmpdir(), "starling-synth-"));
  try {
    const { app, state, control } = starlingApp({
      outdir: assembly,
      context: {
        ...context,
        ...options.context,
        ...(options.bundle === "templates" ? { "aws:cdk:bundling-stacks": [] } : {}),
      },
    });
    app.synth();
    return {
      assembly,
      state: Template.fromStack(state),
      control: Template.fromStack(control),
      resources: [state, control].flatMap(resourcesOf),
    };
  } finally {
    if (options.bundle === "templates") rmSync(assembly, { recursive: true, force: true });
  }
}

function resourcesOf(stack: Stack): readonly Resource[] {
  return resourcesIn(Template.fromStack(stack));
}

export function resourcesIn(template: Template): readonly Resource[] {
  const { Resources } = template.toJSON() as { Resources: Record<string, Omit<Resource, "id">> };
  return Object.entries(Resources).map(([id, resource]) => ({
    ...resource,
    id,
    Properties: resource.Properties ?? {},
  }));
}

export function ofType(resources: readonly Resource[], type: string): readonly Resource[] {
  return resources.filter((resource) => resource.Type === type);
}

/** Allow statements of every policy of a role, by the role's logical id. */
export function statementsByRole(resources: readonly Resource[]): ReadonlyMap<string, readonly Statement[]> {
  const found = new Map<string, Statement[]>();
  const add = (role: string, document: unknown) => {
    const statements = (document as { Statement: Statement[] }).Statement.filter(({ Effect }) => Effect === "Allow");
    found.set(role, [...(found.get(role) ?? []), ...statements]);
  };
  for (const policy of ofType(resources, "AWS::IAM::Policy")) {
    for (const role of policy.Properties.Roles as { Ref: string }[]) add(role.Ref, policy.Properties.PolicyDocument);
  }
  for (const role of ofType(resources, "AWS::IAM::Role")) {
    for (const policy of (role.Properties.Policies ?? []) as { PolicyDocument: unknown }[]) {
      add(role.id, policy.PolicyDocument);
    }
  }
  return found;
}

/** The function of a folder below functions/. */
export function functionNamed(resources: readonly Resource[], folder: string): Resource {
  const name = `${folder[0]?.toUpperCase()}${folder.slice(1)}`;
  const found = ofType(resources, "AWS::Lambda::Function").filter(({ id }) => id.startsWith(`Wiring${name}Function`));
  const [only] = found;
  if (only === undefined || found.length > 1) throw new Error(`${found.length} functions are named ${name}`);
  return only;
}

/** Logical id of a function's role. */
export function roleOf(lambda: Resource): string {
  return (lambda.Properties.Role as { "Fn::GetAtt": [string, string] })["Fn::GetAtt"][0];
}

export function listOf<T>(value: T | readonly T[]): readonly T[] {
  return Array.isArray(value) ? value : [value as T];
}

/** A CloudFormation value as one text, in which names of other resources can be looked for. */
export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  const [[intrinsic, argument] = []] = Object.entries((value ?? {}) as Record<string, unknown>);
  if (intrinsic === "Fn::Join") return (argument as [string, unknown[]])[1].map(textOf).join("");
  if (intrinsic === "Fn::ImportValue") return `<${textOf(argument)}>`;
  if (intrinsic === "Fn::GetAtt") return `<${(argument as string[]).join(".")}>`;
  if (intrinsic === "Ref") return `<${String(argument)}>`;
  return JSON.stringify(value);
}
