import { clusterSteps, type DesiredAccess, roleSteps } from "#cli/access/access-steps.ts";
import { clustersByTags, EksAccounts, type FoundCluster, parseTags } from "#cli/access/eks-accounts.ts";
import { grantAccess } from "#cli/access/grant-access.ts";
import { type PlannedCluster, planClusters } from "#cli/access/plan-clusters.ts";
import { requireRegion } from "#cli/access/require-region.ts";
import { sendDocuments } from "#cli/commands/apply.ts";
import { serialise } from "#cli/format/serialise.ts";
import { manifestYaml } from "#cli/output/manifest-yaml.ts";
import { isData } from "#cli/output/output.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { readDocuments } from "#cli/session/read-documents.ts";
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { didYouMean } from "#shared/base/nearest-name.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { quoted } from "#shared/base/shell-word.ts";
import { accessGroup, accessGroupText, rbacManifests } from "#shared/fleet/access/cluster-rbac.ts";
import type { ApiList, ClusterObject } from "#shared/fleet/api/objects.ts";
import type { ZoneObject } from "#shared/fleet/api/zone-object.ts";
import { type EksArn, parseEksArn } from "#shared/fleet/eks-arn.ts";
import { homeZone, roleOutput } from "#shared/fleet/kinds/zone-name.ts";

export interface AddOptions {
  readonly selector?: string;
  readonly account?: string;
  readonly regions?: string;
  readonly assumeRole?: string;
  readonly name: string;
  readonly label: readonly string[];
  readonly role?: string;
  readonly zone?: string;
  readonly applyRole?: string;
  readonly group: string;
  readonly grant?: boolean;
  readonly dryRun?: boolean;
}

const allOfThem = 100_000;
const concurrency = 8;
const rolePattern = /^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,512}$/;

/**
 * Registers EKS clusters by their ARNs or tags, and prints the commands that remain for their accounts. With `--grant` it
 * creates the access entries and the RBAC objects itself. A second run changes only what is missing.
 */
export async function clusterAdd(session: Session, arns: readonly string[], options: AddOptions): Promise<ExitReason> {
  requireGroup(options);
  const accounts = new EksAccounts(session, options);
  const labels = labelsOf(options.label);
  const clusters = await clustersOf(session, arns, { options, accounts });
  const { installation } = await session.api.call<{ readonly installation: string }>({
    method: "GET",
    path: "/v1/whoami",
  });
  await requireZone(session, options);
  const { items: known } = await readList<ClusterObject>(session, { path: "/v1/clusters", limit: allOfThem });
  const named = {
    name: options.name,
    labels,
    installationId: installation,
    ...defined({ role: options.role, zone: options.zone }),
  };
  const planned = planClusters(clusters, { ...named, known });
  const documents = planned.map(({ document }) => document);
  const { output } = session.options;
  if (isData(output)) {
    session.io.out(
      output === "yaml"
        ? documents.map((one) => manifestYaml(one)).join("---\n")
        : serialise(listed(documents), output),
    );
    return "done";
  }
  const desired = await desiredAccess(session, planned, { options, installation });
  await write(session, documents, options);
  if (options.dryRun === true || options.grant !== true) {
    remains(session, desired, {
      title: "run these commands",
      steps: (one) => [...roleSteps(one), ...clusterSteps(one)],
    });
    return "done";
  }
  return grant(session, desired, accounts);
}

function listed(items: readonly unknown[]) {
  return { kind: "ClusterList", metadata: {}, items };
}

/** Prints the RBAC objects of Starling's group, for kubectl. */
export async function clusterRbac(session: Session, { group }: Pick<AddOptions, "group">): Promise<ExitReason> {
  requireGroup({ group });
  session.io.out(
    rbacManifests({ group })
      .map((one) => manifestYaml(one))
      .join("---\n"),
  );
  return "done";
}

function requireGroup({ group }: Pick<AddOptions, "group">): void {
  if (accessGroup.test(group)) return;
  throw usageFailure(`--group is "${group}"; expected ${accessGroupText}`, "--group starling, or no --group");
}

interface Searching {
  readonly options: AddOptions;
  readonly accounts: EksAccounts;
}

async function clustersOf(
  session: Session,
  arns: readonly string[],
  { options, accounts }: Searching,
): Promise<readonly FoundCluster[]> {
  const { selector } = options;
  if (arns.length > 0 === (selector !== undefined)) {
    const given =
      selector === undefined ? "neither ARNs nor -l are given" : "both ARNs and -l are given; expected one of them";
    throw usageFailure(given, "starling cluster add ARN..., or -l tag=value");
  }
  if (selector === undefined) return [...new Set(arns)].map(parsed);
  const tags = parseTags(selector);
  if (tags === undefined) {
    throw usageFailure(
      `-l is "${selector}"; expected tags of EKS clusters: KEY=VALUE,KEY=VALUE`,
      "-l env=prod,team=web",
    );
  }
  const found = await clustersByTags(accounts, {
    tags,
    accounts: accountsOf(options),
    regions: regionsOf(session, options),
  });
  if (found.unasked.length > 0) {
    throw new CliFailure("some accounts or regions did not answer; nothing was written", {
      exit: "unknown",
      lines: found.unasked,
      next: "exclude them with --account and --regions, or name the clusters: starling cluster add ARN...",
    });
  }
  if (found.clusters.length > 0) return found.clusters;
  throw new CliFailure(`no cluster has the tags ${selector}`, {
    exit: "no",
    next: "aws eks list-clusters; aws eks describe-cluster --name NAME --query cluster.tags",
  });
}

function parsed(text: string): EksArn {
  const arn = parseEksArn(text);
  if (arn === undefined) {
    throw usageFailure(
      `"${text}" is not the ARN of an EKS cluster`,
      "aws eks describe-cluster --name NAME --query cluster.arn --output text",
    );
  }
  requireRegion(arn.region, text);
  return arn;
}

function accountsOf({ account, assumeRole }: AddOptions): readonly string[] {
  const accounts = account?.split(",").map((each) => each.trim()) ?? [];
  const wrong = accounts.find((each) => !/^\d{12}$/.test(each));
  if (wrong !== undefined) {
    throw usageFailure(
      `--account has "${wrong}"; expected ids of 12 digits, separated by commas`,
      "--account 111122223333",
    );
  }
  if (accounts.length > 1 && assumeRole === undefined) {
    const message = "several accounts need --assume-role";
    throw usageFailure(message, "--assume-role NAME, of a role that you may assume in each account");
  }
  return accounts;
}

function regionsOf(session: Session, { regions }: AddOptions): readonly string[] {
  const given = regions?.split(",") ?? [session.options.region ?? session.io.env.AWS_REGION ?? ""];
  const named = given.map((each) => each.trim());
  if (named.includes("")) throw usageFailure("no region is given", "--regions eu-west-1,us-east-1");
  for (const region of named) requireRegion(region, regions === undefined ? "the region" : "--regions");
  return named;
}

function labelsOf(given: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    given.map((text) => {
      const [, key, value] = /^([^=]+)=([^=]*)$/.exec(text) ?? [];
      if (key !== undefined && value !== undefined) return [key, value];
      throw usageFailure(`--label is "${text}"; expected KEY=VALUE`, "--label env=prod --label ring=broad");
    }),
  );
}

/** @throws CliFailure when no worker would reach the clusters, because the installation has no such zone. */
async function requireZone(session: Session, { zone }: AddOptions): Promise<void> {
  if (zone === undefined) return;
  const { items } = await session.api.call<ApiList<ZoneObject>>({ method: "GET", path: "/v1/zones" });
  const names = items.map(({ metadata }) => metadata.name);
  if (names.includes(zone)) return;
  const message = `--zone is "${zone}", and the installation has only the zones ${names.join(", ")}`;
  throw usageFailure(`${message}${didYouMean(zone, names)}`, "--zone NAME of `starling get zones`");
}

/** The role that the clusters' roles must trust: of --apply-role, or the one of their zone in the context's stack. */
async function applyRoleOf(session: Session, zone: string, { applyRole, grant }: AddOptions): Promise<string> {
  if (applyRole !== undefined) {
    if (rolePattern.test(applyRole)) return applyRole;
    throw usageFailure(
      `--apply-role is "${applyRole}"; expected the ARN of a role`,
      "--apply-role arn:aws:iam::111122223333:role/...",
    );
  }
  const output = roleOutput(zone);
  const found = await session.stackOutput(output);
  if (found !== undefined) return found;
  const next = `--apply-role ARN, output ${output} of the control stack; a context that was added with --stack knows it`;
  const which = zone === homeZone ? "Starling's apply role" : `the role of zone ${zone}`;
  if (grant === true) throw usageFailure(`${which} is not known`, next);
  const placeholder = zone === homeZone ? "APPLY_ROLE" : `ROLE_OF_ZONE_${zone.toUpperCase().replaceAll("-", "_")}`;
  session.note(`${placeholder} stands for ${which}; to fill it in: ${next}`);
  return placeholder;
}

async function desiredAccess(
  session: Session,
  planned: readonly PlannedCluster[],
  { options, installation }: { readonly options: AddOptions; readonly installation: string },
): Promise<readonly DesiredAccess[]> {
  const roles = new Map<string, string>();
  for (const { zone } of planned) if (!roles.has(zone)) roles.set(zone, await applyRoleOf(session, zone, options));
  return planned.map(({ name, eks, roleName, zone }) => ({
    cluster: name,
    eks,
    applyRole: roles.get(zone) ?? "",
    installationId: installation,
    group: options.group,
    ...defined({ roleName }),
  }));
}

async function write(session: Session, documents: readonly unknown[], { dryRun }: AddOptions): Promise<void> {
  const text = documents.map((one) => manifestYaml(one)).join("---\n");
  const checked = await readDocuments(
    { ...session.io, readInput: async () => text },
    { paths: ["-"], folders: "flat" },
  );
  const again = "the same command with --yes";
  await sendDocuments(session, checked, { dryRun: dryRun === true ? "server" : "none", again });
}

interface Remaining {
  readonly title: string;
  readonly steps: (access: DesiredAccess) => readonly string[];
}

function remains(session: Session, desired: readonly DesiredAccess[], { title, steps }: Remaining): void {
  const lines = desired.flatMap((access) => {
    const { cluster, eks } = access;
    const of = steps(access);
    return of.length === 0 ? [] : [`# ${cluster}: ${title} (account ${eks.accountId}, ${eks.region})`, ...of];
  });
  if (lines.length > 0) session.io.out(`${lines.join("\n")}\n`);
  session.note(`  next: starling cluster check ${desired.map(({ cluster }) => quoted(cluster)).join(" ")}`);
}

async function grant(session: Session, desired: readonly DesiredAccess[], accounts: EksAccounts): Promise<ExitReason> {
  const clock = { now: () => session.io.now(), sleep: session.pause };
  const reported = new Map<string, string>();
  const failed = new Set<string>();
  await runConcurrently(desired, concurrency, async (access) => {
    try {
      const done = await grantAccess(access, { accounts, clock });
      reported.set(access.cluster, done.length === 0 ? "access unchanged" : done.join(", "));
    } catch (error) {
      failed.add(access.cluster);
      reported.set(access.cluster, `access not granted: ${errorMessage(error)}`);
    }
  });
  for (const { cluster } of desired) session.io.out(`cluster/${cluster} ${reported.get(cluster)}\n`);
  remains(session, desired, { title: "create the role, if it does not exist yet", steps: roleSteps });
  if (failed.size === 0) return "done";
  throw new CliFailure(`access to ${failed.size} of ${desired.length} clusters was not granted`, {
    exit: "no",
    next: "the same command again; it grants what is missing",
  });
}
