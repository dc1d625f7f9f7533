/** Reads the settings, and finds every problem of them before anything is made. */
import { Token } from "aws-cdk-lib";
import type * as z from "zod";
import { concurrencyProblems } from "#infra/concurrency.ts";
import { resolveZoneProblems } from "#infra/resolve-zone.ts";
import { SettingError } from "#infra/setting-error.ts";
import { type Settings, settingNames, settingRows, settingsSchema } from "#infra/settings.ts";
import {
  homeProblem,
  sharedRoleProblems,
  tooManyClustersProblems,
  zoneProblem,
  zonesElsewhereProblems,
} from "#infra/zone-settings.ts";
import { nearestName } from "#shared/base/nearest-name.ts";
import { parseAllowedBuckets } from "#shared/fleet/source-buckets.ts";

/** @throws SettingError with one line for each problem: the setting, its value, and the expected value. */
export function readSettings(given: Readonly<Record<string, unknown>>): Settings {
  const { success, data, error } = settingsSchema.safeParse(given);
  const problems = success ? problemsTogether(data) : error.issues.flatMap((issue) => problemsOf(issue, given));
  if (success && problems.length === 0) return data;
  throw new SettingError([...new Set(problems)]);
}

/** The problems of settings that are right one by one, and do not fit together. */
function problemsTogether(settings: Settings): readonly string[] {
  return [
    ...tooManyClustersProblems(settings),
    ...resolveZoneProblems(settings),
    ...otherStateProblems(settings),
    ...zonesElsewhereProblems(settings),
    ...sharedRoleProblems(settings),
    ...halfADomainProblems(settings),
    ...ownBucketProblems(settings),
    ...foreignGrantProblems(settings),
    ...concurrencyProblems(settings),
  ];
}

/** A host name without a certificate, or a certificate without a host name. */
function halfADomainProblems({ domain, domainCertificate }: Settings): readonly string[] {
  if ((domain === undefined) === (domainCertificate === undefined)) return [];
  const [has, lacks] = domain === undefined ? ["domainCertificate", "domain"] : ["domain", "domainCertificate"];
  return [`setting ${has} requires setting ${lacks}; set both, or neither`];
}

/** The zones elsewhere work on the table and the bucket of the functions. */
function otherStateProblems({ home, table, bucket }: Settings): readonly string[] {
  const named = { table: table?.split(":table/").at(-1), bucket };
  return (["table", "bucket"] as const).flatMap((field) => {
    const used = named[field];
    if (home === undefined || used === undefined || Token.isUnresolved(used) || used === home[field]) return [];
    return [
      `setting home has ${field} ${home[field]}, but setting ${field} is ${used}; name the same ${field} in both`,
    ];
  });
}

/** Starling's bucket holds the artifacts of all namespaces. */
function ownBucketProblems({ bucket, sourceBuckets }: Settings): readonly string[] {
  if (bucket === undefined || !parseAllowedBuckets(sourceBuckets.join(",")).some(({ name }) => name === bucket))
    return [];
  return [`setting sourceBuckets has ${bucket}, which setting bucket makes Starling's own; name other buckets`];
}

/** The policy of a bucket that an earlier installation left belongs to nobody here. */
function foreignGrantProblems({ artifactReaders, bucket }: Settings): readonly string[] {
  if (artifactReaders.length === 0 || bucket === undefined) return [];
  return [
    `setting artifactReaders cannot change the policy of bucket ${bucket}; leave it out, and let the policy of that bucket allow s3:GetObject on artifacts/*`,
  ];
}

function problemsOf(issue: z.core.$ZodIssue, given: Readonly<Record<string, unknown>>): readonly string[] {
  if (issue.code === "unrecognized_keys" && issue.path.length === 0) return issue.keys.map(unknownSetting);
  const name = String(issue.path[0]);
  if (name === "zones") return zoneProblem(issue, { given: given.zones, shown });
  if (name === "home") return homeProblem(issue, { given: given.home, shown });
  const desired = settingRows.get(settingsSchema.shape[name as keyof Settings])?.desired;
  const why = issue.code === "custom" && issue.params?.reported === true ? `, and ${issue.message}` : "";
  return [`setting ${name} is ${shown(given[name])}${why}; expected ${desired}`];
}

/** The value for an error. PEM is not shown, because it is long and may be a key. */
function shown(value: unknown): string {
  if (typeof value === "string" && value.includes("-----BEGIN ")) return "a text in PEM";
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

function unknownSetting(name: string): string {
  const nearest = nearestName(name, settingNames);
  const remedy = nearest === undefined ? "docs/settings.md lists all of them" : `did you mean ${nearest}?`;
  return `there is no setting ${name}; ${remedy}`;
}
