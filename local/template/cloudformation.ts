/** The parts of a CloudFormation template that this machine reads. */
export interface Template {
  readonly Resources: Readonly<Record<string, TemplateResource>>;
  readonly Outputs?: Readonly<Record<string, TemplateOutput>>;
}

export interface TemplateResource {
  readonly Type: string;
  readonly Properties?: Readonly<Record<string, unknown>>;
  readonly Metadata?: Readonly<Record<string, unknown>>;
}

export interface TemplateOutput {
  readonly Value: unknown;
}

/** Templates by stack name. */
export type Stacks = Readonly<Record<string, Template>>;

/** Pseudo parameters, for example `AWS::Region`. */
export type PseudoParameters = Readonly<Record<`AWS::${"AccountId" | "Region" | "Partition" | "URLSuffix"}`, string>>;

/** The physical name of a resource. CloudFormation adds random letters, which are not necessary on one machine. */
export function physicalName(stack: string, logicalId: string): string {
  return `${stack}-${logicalId}`;
}
