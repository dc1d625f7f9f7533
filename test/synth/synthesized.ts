import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Template } from "aws-cdk-lib/assertions";
import { starlingApp } from "#infra/starling-app.ts";
import type { Stacks } from "#local/template/cloudformation.ts";
import { synthesize } from "#local/template/synthesize.ts";

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
  readonly state: Template;
  readonly control: Template;
  readonly resources: readonly Resource[];
}

export interface SynthesizedCode extends Synthesized {
  /** Folder with the templates and the functions' code. */
  readonly assembly: string;
  /** To be called by whoever asked, when the code is no longer needed. */
  remove(): void;
}

/**
 * The app as `cdk synth` makes it, checks of cdk-nag included: a violation throws. Only the templates; made once for each
 * context, whoever asks.
 */
export async function synthesizeTemplates(context: Readonly<Record<string, string>> = {}): Promise<Synthesized> {
  return partsOf(await synthesize(context));
}

/** The same with the code that esbuild makes, which takes seconds: what `STARLING_ASSEMBLY` names was made already. */
export function synthesizeCode(): SynthesizedCode {
  const made = process.env.STARLING_ASSEMBLY;
  if (made !== undefined) return { ...partsOf(stacksIn(made)), assembly: made, remove() {} };
  const { context } = JSON.parse(readFileSync("cdk.json", "utf8")) as { context: Record<string, unknown> };
  const assembly = mkdtempSync(join(tmpdir(), "starling-synth-"));
  const remove = () => rmSync(assembly, { recursive: true, force: true });
  try {
    starlingApp({ outdir: assembly, context }).app.synth();
    return { ...partsOf(stacksIn(assembly)), assembly, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

const templateSuffix = ".template.json";

function stacksIn(assembly: string): Stacks {
  const files = readdirSync(assembly).filter((name) => name.endsWith(templateSuffix));
  return Object.fromEntries(
    files.map((name) => [
      name.slice(0, -templateSuffix.length),
      JSON.parse(readFileSync(join(assembly, name), "utf8")),
    ]),
  );
}

function partsOf(stacks: Stacks): Synthesized {
  const [state, control] = ["state", "control"].map((part) => {
    const [found] = Object.entries(stacks).filter(([name]) => name.endsWith(`-${part}`));
    if (found === undefined) throw new Error(`there is no stack ${part} among ${Object.keys(stacks).join(", ")}`);
    return Template.fromJSON(found[1] as object);
  }) as [Template, Template];
  return { state, control, resources: [state, control].flatMap(resourcesIn) };
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

/** The function of a folder below functions/. @param named - `apply`, or `apply-spoke` for that of the zone `spoke`. */
export function functionNamed(resources: readonly Resource[], named: string): Resource {
  const [folder = "", ...zone] = named.split("-");
  const place = zone.length === 0 ? "" : `Zone${zone.join("")}`;
  const name = `${place}${folder[0]?.toUpperCase()}${folder.slice(1)}`;
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

/** Output `TableArn` of the stack `starling-state` is `<starling-state-table-arn>`. */
function outputText({ StackName, OutputName }: { readonly StackName: string; readonly OutputName: string }): string {
  return `<${StackName}-${OutputName.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "-").toLowerCase()}>`;
}

/** A CloudFormation value as one text, in which names of other resources can be looked for. */
export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  const [[intrinsic, argument] = []] = Object.entries((value ?? {}) as Record<string, unknown>);
  if (intrinsic === "Fn::Join") return (argument as [string, unknown[]])[1].map(textOf).join("");
  if (intrinsic === "Fn::GetStackOutput") return outputText(argument as { StackName: string; OutputName: string });
  if (intrinsic === "Fn::GetAtt") return `<${(argument as string[]).join(".")}>`;
  if (intrinsic === "Ref") return `<${String(argument)}>`;
  return JSON.stringify(value);
}
