import { createRequire } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { type Duration, RemovalPolicy } from "aws-cdk-lib";
import { Effect, type IRole, PolicyStatement, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import {
  Architecture,
  CfnFunction,
  type ILayerVersion,
  LoggingFormat,
  RecursiveLoop,
  Runtime,
  TenancyConfig,
} from "aws-cdk-lib/aws-lambda";
import { SqsEventSource } from "aws-cdk-lib/aws-lambda-event-sources";
import { type ICommandHooks, LogLevel, NodejsFunction, OutputFormat } from "aws-cdk-lib/aws-lambda-nodejs";
import { type ILogGroup, LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import type * as z from "zod";
import type { AccessFor, Named } from "#infra/constructs/access.ts";
import { acknowledgeWildcards } from "#infra/constructs/acknowledge-wildcards.ts";
import type { WorkQueue } from "#infra/constructs/work-queue.ts";
import { defined } from "#shared/base/defined.ts";

const repository = fileURLToPath(new URL("../..", import.meta.url));

/** Some dependencies are CommonJS: they call `require` for Node's own modules, and read `__dirname`. An ES module has neither. */
const commonJsBanner =
  "import { createRequire as starlingCreateRequire } from 'node:module';" +
  "const require = starlingCreateRequire(import.meta.url);" +
  "const __dirname = import.meta.dirname;";

/** A permission for resources whose names are not known at deployment: patterns, and the reason for their wildcards. */
export interface Grant {
  readonly action: string;
  readonly arns: readonly string[];
  readonly conditions?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly reason: string;
}

/** A package without dependencies, and its files that are shipped: the module, its manifest and its licence. */
export interface Beside {
  readonly name: string;
  readonly files: readonly string[];
}

/** @see StarlingFunctionProps.trustedRole */
export interface TrustedRole {
  readonly arn?: string;
  readonly name?: string;
}

/** The place in a VPC from which a function sends its requests. */
export interface Network {
  readonly subnetIds: readonly string[];
  readonly securityGroupIds: readonly string[];
}

export interface StarlingFunctionProps<Env extends z.ZodObject> {
  /** Folder below functions/; its handler.ts is the entry. */
  readonly folder: string;
  /** The schema of its environment, from the folder's env.ts. */
  readonly env: Env;
  /** Its permissions, by the variable that names the resource. */
  readonly access: AccessFor<Env>;
  /** Permissions for resources that rows name, not variables. */
  readonly namedByRows?: readonly Grant[];
  /** A log group that outlives the function. Absent: a new one with a month of retention, which is deleted with the stack. */
  readonly logGroup?: Named;
  /** Name of the new log group. Absent: a name that CloudFormation chooses. */
  readonly logName?: string;
  readonly timeout: Duration;
  readonly memoryMiB: number;
  /**
   * A role that others trust. It exists already, or it is created and outlives the stack, or it is created with this name, by which
   * others know it, and ends with the stack. Absent: a role of the stack.
   */
  readonly trustedRole?: TrustedRole;
  /** The code in a bucket of the function's region. Absent: the stack brings the code. */
  readonly codeIn?: { readonly bucket: string; readonly key: string };
  /** Concurrency that is reserved for the function, which is also its maximum. */
  readonly reservedConcurrency?: number;
  /** A package that the function loads from `node_modules` beside its bundle: its licence keeps it out of the bundle. */
  readonly beside?: Beside;
  readonly layer?: ILayerVersion;
  /** Absent: the function runs outside of every VPC. */
  readonly network?: Network;
  /** Must fit the binaries of the layer. Default: arm64, which is cheaper. */
  readonly architecture?: Architecture;
  /**
   * Each sandbox belongs to one tenant, and the role is denied everything but its log. Not even the policy of a resource can give
   * it more.
   */
  readonly confined?: true;
  /** The function is part of a circle of messages by design, which Lambda would stop after about 16 rounds. */
  readonly inMessageCircle?: true;
}

/** The actions that Lambda needs, by its documentation, to give a function network interfaces in a VPC. */
const interfaceActions = [
  "ec2:CreateNetworkInterface",
  "ec2:DescribeNetworkInterfaces",
  "ec2:DescribeSubnets",
  "ec2:DeleteNetworkInterface",
  "ec2:AssignPrivateIpAddresses",
  "ec2:UnassignPrivateIpAddresses",
] as const;

/** One function of Starling with its own role and log group. Its rights are those of `access`, and to log. */
export class StarlingFunction<Env extends z.ZodObject> extends Construct {
  readonly lambda: NodejsFunction;
  readonly roleArn: string;
  readonly logs: Named;

  constructor(scope: Construct, id: string, props: StarlingFunctionProps<Env>) {
    super(scope, id);
    const { logGroup, arn: logGroupArn } = this.#logs(props);
    this.logs = { name: logGroup.logGroupName, arn: logGroupArn };
    const role = this.#role(props.trustedRole);
    role.addToPrincipalPolicy(
      new PolicyStatement({ actions: ["logs:CreateLogStream", "logs:PutLogEvents"], resources: [logGroupArn] }),
    );

    this.roleArn = role.roleArn;
    if (props.confined === true) {
      // Lambda decrypts the environment in the role's name with a grant on the key, and a denial would override the grant.
      const own = ["logs:CreateLogStream", "logs:PutLogEvents", "kms:Decrypt"];
      role.addToPrincipalPolicy(new PolicyStatement({ effect: Effect.DENY, notActions: own, resources: ["*"] }));
    }

    const environment: Record<string, string> = {};
    for (const [variable, access] of Object.entries(props.access)) {
      environment[variable] = access.value;
      for (const statement of access.statements) {
        role.addToPrincipalPolicy(statement);
        if (access.wildcardReason !== undefined) acknowledgeWildcards(role, statement, access.wildcardReason);
      }
    }
    for (const { action, arns, conditions = {}, reason } of props.namedByRows ?? []) {
      const statement = new PolicyStatement({ actions: [action], resources: [...arns], conditions });
      role.addToPrincipalPolicy(statement);
      acknowledgeWildcards(role, statement, reason);
    }

    this.lambda = new NodejsFunction(this, "Function", {
      entry: `${repository}functions/${props.folder}/handler.ts`,
      projectRoot: repository,
      depsLockFilePath: `${repository}package-lock.json`,
      runtime: Runtime.NODEJS_24_X,
      architecture: props.architecture ?? Architecture.ARM_64,
      timeout: props.timeout,
      memorySize: props.memoryMiB,
      ...defined({ reservedConcurrentExecutions: props.reservedConcurrency }),
      role,
      logGroup,
      loggingFormat: LoggingFormat.JSON,
      environment: { ...environment, NODE_OPTIONS: "--enable-source-maps" },
      ...(props.layer === undefined ? {} : { layers: [props.layer] }),
      recursiveLoop: props.inMessageCircle === true ? RecursiveLoop.ALLOW : RecursiveLoop.TERMINATE,
      ...(props.confined === true ? { tenancyConfig: TenancyConfig.PER_TENANT } : {}),
      awsSdkConnectionReuse: false,
      bundling: {
        format: OutputFormat.ESM,
        target: "node24",
        mainFields: ["module", "main"],
        // The runtime's SDK changes without notice; the version of the lock file does not.
        // ssh2 asks for cpu-features, and for a program that its installation may have built, only to be faster.
        externalModules: ["cpu-features", "*.node", ...(props.beside === undefined ? [] : [props.beside.name])],
        ...(props.beside === undefined ? {} : { commandHooks: copies(props.beside) }),
        banner: commonJsBanner,
        sourceMap: true,
        sourcesContent: false,
        minify: false,
        logLevel: LogLevel.ERROR,
      },
    });
    const { defaultChild } = this.lambda.node;
    if (!(defaultChild instanceof CfnFunction)) throw new Error("a NodejsFunction holds no CfnFunction");
    // The asset's name is a digest. This metadata names the function, above all for local/template/read-plan.ts.
    defaultChild.addMetadata("starling:folder", props.folder);
    if (props.codeIn !== undefined) {
      defaultChild.addPropertyOverride("Code", { S3Bucket: props.codeIn.bucket, S3Key: props.codeIn.key });
    }
    if (props.network !== undefined) this.#enter(props.network, { role, lambda: defaultChild });
  }

  /** Lambda makes the network interfaces of a function by the function's own role, before anything else. */
  #enter({ subnetIds, securityGroupIds }: Network, { role, lambda }: { role: IRole; lambda: CfnFunction }): void {
    lambda.vpcConfig = { subnetIds: [...subnetIds], securityGroupIds: [...securityGroupIds] };
    const statement = new PolicyStatement({ actions: [...interfaceActions], resources: ["*"] });
    const { policyDependable } = role.addToPrincipalPolicy(statement);
    if (policyDependable !== undefined) lambda.node.addDependency(policyDependable);
    acknowledgeWildcards(
      role,
      statement,
      "EC2 knows no resources for most of these, and Lambda needs them for the interfaces of a function.",
    );
  }

  #role(trusted: TrustedRole | undefined): IRole {
    if (trusted?.arn !== undefined) return Role.fromRoleArn(this, "Role", trusted.arn);
    const assumedBy = new ServicePrincipal("lambda.amazonaws.com");
    // A role of a fixed name that outlived its stack would keep the stack from being deployed again.
    if (trusted?.name !== undefined) return new Role(this, "Role", { assumedBy, roleName: trusted.name });
    const role = new Role(this, "Role", { assumedBy });
    // A new role of the same name is another principal, which trust policies and access entries would not accept.
    if (trusted !== undefined) role.applyRemovalPolicy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE);
    return role;
  }

  #logs({ logGroup: existing, logName }: { readonly logGroup?: Named; readonly logName?: string }): {
    readonly logGroup: ILogGroup;
    readonly arn: string;
  } {
    if (existing !== undefined) {
      return { logGroup: LogGroup.fromLogGroupName(this, "Logs", existing.name), arn: existing.arn };
    }
    const logGroup = new LogGroup(this, "Logs", {
      ...defined({ logGroupName: logName }),
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    return { logGroup, arn: logGroup.logGroupArn };
  }

  /** Invokes the function with batches of the queue, at most `maxConcurrency` at once. A failed message returns alone. */
  workOn(
    queue: WorkQueue,
    options: { readonly batchSize: number; readonly maxConcurrency: number; readonly batchWindow?: Duration },
  ): void {
    this.lambda.addEventSource(
      new SqsEventSource(queue.queue, {
        batchSize: options.batchSize,
        maxConcurrency: options.maxConcurrency,
        reportBatchItemFailures: true,
        ...defined({ maxBatchingWindow: options.batchWindow }),
      }),
    );
  }
}

function copies({ name, files }: Beside): ICommandHooks {
  const entry = createRequire(import.meta.url).resolve(name);
  const folder = `node_modules/${name}/`;
  const from = entry.slice(0, entry.lastIndexOf(folder) + folder.length);
  return {
    beforeBundling: () => [],
    beforeInstall: () => [],
    afterBundling: (_input, output) =>
      files.map((file) => {
        const to = `${output}/${folder}${file}`;
        return `mkdir -p "${dirname(to)}" && cp "${from}${file}" "${to}"`;
      }),
  };
}
