import type { PseudoParameters } from "#local/template/cloudformation.ts";

/** The values of `Ref` and `Fn::GetAtt` for one resource. */
export interface ResourceValues {
  readonly ref: string;
  readonly attributes: Readonly<Record<string, string>>;
}

export interface ValueScope {
  readonly pseudo: PseudoParameters;
  /** A resource of the template that contains the value. */
  resource(logicalId: string): ResourceValues | undefined;
  /** The output of a stack by name. */
  output(stack: string, name: string): string | undefined;
}

type Intrinsic = (argument: unknown, scope: ValueScope) => string;

const intrinsics: Readonly<Record<string, Intrinsic>> = {
  Ref: (argument, scope) => ref(text(argument, "Ref"), scope),
  "Fn::GetAtt": getAtt,
  "Fn::Join": join,
  "Fn::Sub": substitute,
  "Fn::GetStackOutput": getStackOutput,
};

/**
 * The text that CloudFormation would insert for a value. @throws Error that names the unknown intrinsic function,
 * resource, attribute or export.
 */
export function resolveValue(value: unknown, scope: ValueScope): string {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return String(value);
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
  const [[name, argument] = ["", undefined]] = entries;
  const intrinsic = entries.length === 1 ? intrinsics[name] : undefined;
  if (intrinsic !== undefined) return intrinsic(argument, scope);
  throw new Error(
    `${JSON.stringify(value)} is not a value that this machine resolves; it supports ${Object.keys(intrinsics).join(", ")}; ` +
      "use one of them in infra/, or add the intrinsic function to local/template/resolve-value.ts",
  );
}

function ref(name: string, scope: ValueScope): string {
  if (name.startsWith("AWS::")) {
    const parameter = (scope.pseudo as Readonly<Record<string, string>>)[name];
    if (parameter !== undefined) return parameter;
    throw new Error(`Ref ${name}: unknown pseudo parameter; expected ${Object.keys(scope.pseudo).join(", ")}`);
  }
  return known(name, scope).ref;
}

function getAtt(argument: unknown, scope: ValueScope): string {
  const [logicalId = "", ...path] = typeof argument === "string" ? argument.split(".") : (argument as string[]);
  const attribute = path.join(".");
  const { attributes } = known(logicalId, scope);
  const found = attributes[attribute];
  if (found !== undefined) return found;
  const has = Object.keys(attributes).join(", ") || "none";
  throw new Error(`Fn::GetAtt ${logicalId}.${attribute}: unknown attribute; on this machine ${logicalId} has ${has}`);
}

function known(logicalId: string, scope: ValueScope): ResourceValues {
  const found = scope.resource(logicalId);
  if (found !== undefined) return found;
  throw new Error(`The template refers to ${logicalId}, which this machine does not create`);
}

function join(argument: unknown, scope: ValueScope): string {
  const [separator, parts] = argument as [string, readonly unknown[]];
  return parts.map((part) => resolveValue(part, scope)).join(separator);
}

function substitute(argument: unknown, scope: ValueScope): string {
  const [pattern, variables] = Array.isArray(argument)
    ? (argument as [string, Readonly<Record<string, unknown>>])
    : [text(argument, "Fn::Sub"), {}];
  return pattern.replaceAll(/\$\{(!?)([^}]+)\}/g, (_whole, literal: string, name: string) => {
    if (literal === "!") return `\${${name}}`;
    if (name in variables) return resolveValue(variables[name], scope);
    return name.includes(".") ? getAtt(name, scope) : ref(name, scope);
  });
}

function getStackOutput(argument: unknown, scope: ValueScope): string {
  const { StackName, OutputName } = argument as { readonly StackName: unknown; readonly OutputName: string };
  const stack = resolveValue(StackName, scope);
  const found = scope.output(stack, OutputName);
  if (found !== undefined) return found;
  throw new Error(`Fn::GetStackOutput ${OutputName} of ${stack}: no stack of this machine has this output`);
}

function text(argument: unknown, intrinsic: string): string {
  if (typeof argument === "string") return argument;
  throw new Error(`${intrinsic} of ${JSON.stringify(argument)}: expected a text`);
}
