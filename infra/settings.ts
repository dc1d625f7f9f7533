/** Every setting of the stacks, for context or props, with its schema and its text in docs/settings.md. */
import { Token } from "aws-cdk-lib";
import * as z from "zod";
import { readGitCa } from "#infra/git-ca.ts";
import { homeForm, homeSchema, zonesSchema } from "#infra/zone-settings.ts";
import { guardAsJson, guardSchema } from "#shared/fleet/kinds/guard-spec.ts";
import { defaultPersonalRoles } from "#shared/fleet/rollout/approval.ts";
import { parseAllowedBucket } from "#shared/fleet/source-buckets.ts";
import { awsGrantForm } from "#shared/source/aws-place.ts";

/** The row of a setting in docs/settings.md, and the expected value in an error. */
export interface SettingRow {
  readonly type: string;
  /** Ends "setting x is y; expected ...". */
  readonly desired: string;
  readonly does: string;
}

/** The rows, by the schema of each setting. */
export const settingRows = z.registry<SettingRow>();

/** A number from cdk.json, or a text from `-c`. */
function wholeNumber({ least, most }: { readonly least: number; readonly most: number }) {
  return z
    .union([z.int(), z.string().regex(/^\d{1,6}$/)])
    .transform(Number)
    .refine((number) => number >= least && number <= most);
}

/** A list, or a text whose entries are separated by commas. */
function listOf(entry: RegExp) {
  return z
    .union([z.array(z.string()), z.string().transform((text) => text.split(","))])
    .transform((entries) => entries.map((each) => each.trim()))
    .refine((entries) => entries.length > 0 && entries.every((each) => entry.test(each)));
}

/** A name that fits the pattern. In another CDK app it may be the name of a resource, which is not known before the deployment. */
function nameOf(pattern: RegExp) {
  return z.string().refine((text) => Token.isUnresolved(text) || pattern.test(text));
}

const concurrencyOf = (queue: string, what: string) =>
  wholeNumber({ least: 2, most: 1000 })
    .optional()
    .register(settingRows, {
      type: "number",
      desired: "a whole number from 2 to 1000, or no value",
      does: `How many ${what} at once. It replaces the number that follows from \`clusters\` and \`concurrency\` for \`${queue}\`.`,
    });

export const settingsSchema = z.strictObject({
  installation: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9-]{0,39}$/)
    .default("starling")
    .register(settingRows, {
      type: "name",
      desired: "1 to 40 letters, digits and dashes, a letter first",
      does: "Name of the installation. The names of its stacks, queues and secrets begin with it, and so does the path of the roles that clusters are reached by. Another name is another installation.",
    }),
  clusters: wholeNumber({ least: 1, most: 999_999 }).default(100).register(settingRows, {
    type: "number",
    desired: "a whole number of at least 1",
    does: "How many clusters the fleet has or will have. The concurrency of the queues follows from it.",
  }),
  concurrency: wholeNumber({ least: 10, most: 999_999 }).default(10).register(settingRows, {
    type: "number",
    desired: "a whole number of at least 10",
    does: "The account's quota of concurrent executions of Lambda in this region, or Starling's part of it. The concurrency of all queues together fits into it. From 102 on, two places are reserved for the timer.",
  }),
  resolveConcurrency: concurrencyOf("resolve", "Sources are fetched"),
  rolloutConcurrency: concurrencyOf("rollout", "groups are planned"),
  renderConcurrency: concurrencyOf("render", "renderings are made"),
  applyConcurrency: concurrencyOf("apply", "clusters of the zone `home` are worked on"),
  applySlowConcurrency: concurrencyOf("applySlow", "slow clusters of `home` are worked on besides those"),
  reportConcurrency: concurrencyOf("report", "batches of reports are handled"),
  clusterRoles: z
    .string()
    // A path is required, because the roles of functions have none and must never be assumed.
    .regex(/^[\w+=,.@-]+\/([\w+=,.@-]+\/)*[\w+=,.@-]*\*?$/)
    .optional()
    .register(settingRows, {
      type: "path and name",
      desired: "a path and a name, such as starling/clusters/* (the roles of Starling itself have no path)",
      does: "Path and name of the IAM roles that Clusters may be reached by. Default: `<installation>/clusters/*`.",
    }),
  clusterAccounts: listOf(/^\d{12}$/)
    .default([])
    .register(settingRows, {
      type: "list",
      desired: "account ids of 12 digits, separated by commas",
      does: "Accounts in which Starling may assume cluster roles, in addition to its own account.",
    }),
  organization: z
    .string()
    .regex(/^o-[a-z0-9]{10,32}$/)
    .optional()
    .register(settingRows, {
      type: "id",
      desired: "the id of an organization, such as o-a1b2c3d4e5",
      does: "Organization whose member accounts may have clusters. With `clusterAccounts`, only the members that are listed there.",
    }),
  awsSources: listOf(awsGrantForm).default([]).register(settingRows, {
    type: "list",
    desired:
      "ARNs of repositories in ECR or CodeCommit, or of connections, separated by commas, each with namespaces behind it if only those may read it, such as arn:aws:codecommit:eu-west-1:111122223333:fleet:shop+payments",
    does: "What Sources with `kind: aws` may read with Starling's own role: ARNs of repositories in ECR and CodeCommit, and of connections of CodeConnections. `ARN:NAMESPACE+NAMESPACE` is for Sources of these namespaces only.",
  }),
  gitAllow: listOf(/^[\w.:-]+(\/\d{1,3})?$/)
    .default([])
    .register(settingRows, {
      type: "list",
      desired: "host names, addresses and ranges, separated by commas, such as git.corp.example,10.20.0.0/16",
      does: "Private hosts and address ranges from which Starling may fetch Sources, and the keys of issuers for Receivers. Public hosts need no entry. It needs `resolveZone`: without a zone, the functions that fetch run outside of every VPC and reach no private address, and the synthesis warns.",
    }),
  resolveZone: z.string().min(1).optional().register(settingRows, {
    type: "name",
    desired: "the name of a zone of setting zones, such as private",
    does: "Zone of `zones` from whose network Sources, and the keys of issuers for Receivers, are read ([Read Sources in a private network](tasks/read-private-sources.md)). Default: outside of every VPC.",
  }),
  sourceBuckets: z
    .union([z.array(z.string()), z.string().transform((text) => text.split(","))])
    .transform((entries) => entries.map((each) => each.trim()))
    .refine((entries) => entries.length > 0 && entries.every((each) => parseAllowedBucket(each) !== undefined))
    .default([])
    .register(settingRows, {
      type: "list",
      desired:
        "names of buckets, separated by commas, each with an account before it if that is another one, and with namespaces behind it if only those may read it, such as acme-manifests,444455556666/acme-shop:shop+payments",
      does: "Buckets that Sources may read: `BUCKET`, `ACCOUNT/BUCKET` of another account, `BUCKET:NAMESPACE+NAMESPACE` for Sources of these namespaces only. Without an entry no Source reads a bucket.",
    }),
  gitCa: z
    .string()
    .transform((text, context) => {
      try {
        return readGitCa(text);
      } catch (error) {
        context.addIssue({ code: "custom", message: (error as Error).message, params: { reported: true } });
        return z.NEVER;
      }
    })
    .optional()
    .register(settingRows, {
      type: "file",
      desired: "the path of a file of certificates in PEM, or the certificates themselves",
      does: "Certificates that connections to Sources trust besides the public authorities: a file of up to 1 MB, read at synthesis. A layer brings them to the function.",
    }),
  table: nameOf(/^(arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:\d{12}:table\/)?[\w.-]{3,255}$/)
    .optional()
    .register(settingRows, {
      type: "name or ARN",
      desired: "the name or the ARN of a table of this account and region",
      does: "Existing table to work on, such as one that was restored to a point in time or that an earlier installation left. The state stack keeps its own table as it is.",
    }),
  bucket: nameOf(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/)
    .optional()
    .register(settingRows, {
      type: "name",
      desired: "the name of a bucket of this account and region",
      does: "Existing bucket for artifacts, renderings, inventories and plans: the one that belongs to `table`. The state stack keeps its own bucket as it is.",
    }),
  webhookSecret: nameOf(/^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]{1,512}$/)
    .optional()
    .register(settingRows, {
      type: "ARN",
      desired: "the whole ARN of a secret, with the six characters at its end",
      does: "Existing secret that senders of push events sign with. The state stack then makes none; a secret that it made earlier leaves the stack and is kept.",
    }),
  applyRole: nameOf(/^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,512}$/)
    .optional()
    .register(settingRows, {
      type: "ARN",
      desired: "the ARN of a role of this account, such as the former output ApplyRole of the control stack",
      does: "Existing role for the function that reaches clusters, one that they already trust. The control stack then makes none; a role that it made earlier leaves the stack and is kept.",
    }),
  oldestRevisionDays: wholeNumber({ least: 1, most: 999 }).default(14).register(settingRows, {
    type: "number",
    desired: "a whole number of days, from 1 to 999",
    does: "An alarm rings when a stage has waited for a newer revision for this many days. Choose more days than a usual rollout takes.",
  }),
  guard: z
    .union([z.literal("none"), guardAsJson, guardSchema])
    // A new fleet grows by registrations, of which a percentage would soon be none.
    .default(() => guardSchema.parse({ additions: 100 }))
    .register(settingRows, {
      type: "guard",
      desired: '"none", or a guard such as {"additions": "10%", "deletions": 0, "objects": "50%", "per": "24h"}',
      does: "Guard of SyncGroups that have none of their own, with the fields of `SyncGroup.spec.guard`, as JSON on the command line. `none`: such groups have no guard.",
    }),
  // A pattern of `*` alone would let everybody choose who they are.
  personalRoles: listOf(/^[\w+=.@-][\w+=.@*-]{0,63}$/)
    .default(() => [...defaultPersonalRoles])
    .register(settingRows, {
      type: "list",
      desired:
        "names of roles without a path, with * for any part but the first letter, separated by commas, such as AWSReservedSSO_*,person-*",
      does: "Roles whose session names are persons when they approve a rollout; by default those of IAM Identity Center. Name only roles whose session name nobody can choose. Any other role is one approver, whoever assumes it.",
    }),
  discoverRole: nameOf(/^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,512}$/)
    .optional()
    .register(settingRows, {
      type: "ARN",
      desired: "the ARN of a role of this account, such as the former output DiscoverRole of the control stack",
      does: "Existing role for the function that discovers clusters, one that the roles of ClusterDiscoveries already trust. It works like `applyRole`.",
    }),
  domain: nameOf(/^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/)
    .optional()
    .register(settingRows, {
      type: "host name",
      desired: "a host name in small letters, such as starling.example.com, together with domainCertificate",
      does: "Host name of the API and the webhook. Without it, each new control stack has a new address. Needs `domainCertificate`.",
    }),
  domainCertificate: nameOf(/^arn:aws[a-z-]*:acm:[a-z0-9-]+:\d{12}:certificate\/[\w-]{1,64}$/)
    .optional()
    .register(settingRows, {
      type: "ARN",
      desired: "the ARN of a certificate of ACM in this region, together with domain",
      does: "Certificate for `domain`, in ACM of the stack's region.",
    }),
  artifactReaders: listOf(/^(\d{12}|arn:aws[a-z-]*:iam::\d{12}:(role|user)\/[\w+=,.@/-]{1,512})$/)
    .default([])
    .register(settingRows, {
      type: "list",
      desired: "account ids of 12 digits, or whole ARNs of roles and users, separated by commas",
      does: "Accounts, roles and users, also of other accounts, that may read artifacts from the bucket ([Artifacts](artifacts.md)). An account decides by its own policies which of its roles may.",
    }),
  eventBus: nameOf(/^(none|[\w./-]{1,256}|arn:aws[a-z-]*:events:[a-z0-9-]+:\d{12}:event-bus\/[\w./-]{1,256})$/)
    .default("default")
    .register(settingRows, {
      type: "name or ARN",
      desired: "the name of an event bus of this account and region, the ARN of another one, or none",
      does: "Bus of EventBridge that gets the events of Sources ([React to a new revision](tasks/react-to-a-revision.md)); `default` is the one that every account has. `none`: no events.",
    }),
  zones: zonesSchema.default([]).register(settingRows, {
    type: "list",
    // Its errors name the field of a zone: see zone-settings.ts.
    desired: "a list of zones as JSON",
    does: "Places besides `home` from which clusters are reached ([Zones](zones.md)): each has workers of its own in a network. `vpc` makes a network with fixed addresses, `subnets` with `securityGroups` uses an existing one.",
  }),
  home: homeSchema.optional().register(settingRows, {
    type: "object",
    desired: homeForm,
    does: "Account, region, table and bucket of the installation, for zones in other accounts and regions ([Clusters in other accounts and regions](tasks/zones-in-other-accounts.md)). Needed only with such zones.",
  }),
  alarmTopicArn: nameOf(/^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[\w-]{1,256}$/)
    .optional()
    .register(settingRows, {
      type: "ARN",
      desired: "the ARN of an SNS topic, such as arn:aws:sns:eu-west-1:111122223333:on-call",
      does: "Topic of this region that gets every alarm when it begins and when it is over. Its policy has to let CloudWatch publish.",
    }),
  alarmEmail: z.email().optional().register(settingRows, {
    type: "address",
    desired: "an e-mail address, such as on-call@example.com",
    does: "Address that gets every alarm. Amazon asks it once to confirm, and sends nothing before that.",
  }),
});

/** The settings that an operator gives. */
export type StarlingSettings = z.input<typeof settingsSchema>;
/** The checked settings, with defaults. */
export type Settings = z.output<typeof settingsSchema>;

export const settingNames = Object.keys(settingsSchema.shape) as readonly (keyof Settings)[];
